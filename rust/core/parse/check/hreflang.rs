//! `hreflang`: ISO 639-1 language, then ISO 15924 script, then ISO 3166-1 region, or `x-default`.

const LANGUAGES: &str = "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu iw in ji jw sh mo";
const REGIONS: &str = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW XK";

/// What is wrong with a `hreflang`; `None` where it is right. Letters count in either case.
pub fn fault(code: &[u8]) -> Option<&'static str> {
    if code.eq_ignore_ascii_case(b"x-default") {
        return None;
    }
    if code.contains(&b'_') {
        return Some("has an underscore where a hyphen belongs");
    }
    let mut parts = code.split(|&b| b == b'-').peekable();
    let language = parts.next().unwrap_or_default();
    if !listed(&LANGUAGE_BITS, language) {
        return Some("does not start with an ISO 639-1 language");
    }
    if parts.peek().is_some_and(|part| part.len() == 4 && part.iter().all(u8::is_ascii_alphabetic))
    {
        parts.next();
    }
    match (parts.next(), parts.next()) {
        (None, _) => None,
        (Some(region), None) if listed(&REGION_BITS, region) => None,
        _ => Some("does not end with an ISO 3166-1 region (GB, not UK; no es-419)"),
    }
}

/// A bit for each two-letter code: the first letter chooses the word, the second the bit.
const fn bits(list: &str) -> [u32; 26] {
    let list = list.as_bytes();
    let mut bits = [0; 26];
    let mut at = 0;
    while at + 1 < list.len() {
        let (first, second) = (list[at].to_ascii_lowercase(), list[at + 1].to_ascii_lowercase());
        bits[(first - b'a') as usize] |= 1 << (second - b'a');
        at += 3;
    }
    bits
}

static LANGUAGE_BITS: [u32; 26] = bits(LANGUAGES);
static REGION_BITS: [u32; 26] = bits(REGIONS);

fn listed(bits: &[u32; 26], wanted: &[u8]) -> bool {
    let [first, second] = wanted else { return false };
    if !first.is_ascii_alphabetic() || !second.is_ascii_alphabetic() {
        return false;
    }
    let word = bits[usize::from(first.to_ascii_lowercase() - b'a')];
    word & (1 << (second.to_ascii_lowercase() - b'a')) != 0
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn codes() {
        for good in ["de", "de-CH", "zh-Hant", "zh-Hant-TW", "x-default", "EN-us", "pt-br"] {
            assert_eq!(fault(good.as_bytes()), None, "{good}");
        }
        for bad in [
            "", "en_US", "US", "xx", "es-419", "en-UK", "en-EU", "deu", "de-", "en-US-x", "de--CH",
            "zh-Hant-",
        ] {
            assert!(fault(bad.as_bytes()).is_some(), "{bad}");
        }
    }
}
