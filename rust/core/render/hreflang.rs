//! Codes of languages and regions (PROTOCOL section 2, *hreflang*).

/// ISO 639-1.
const LANGUAGES: &str = "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch \
    co cr cs cu cv cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he \
    hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv \
    kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny \
    oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su \
    sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu";

/// ISO 3166-1 alpha-2.
const REGIONS: &str = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ \
    BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE \
    DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR \
    GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP \
    KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT \
    MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW \
    PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG \
    TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW";

fn listed(list: &str, code: &[u8]) -> bool {
    list.as_bytes().split(|byte| *byte == b' ').any(|known| known.eq_ignore_ascii_case(code))
}

/// Whether this is a region of ISO 3166-1, in upper or lower case.
pub fn is_region(code: &[u8]) -> bool {
    code.len() == 2 && listed(REGIONS, code)
}

/// Checks a code of `hreflang`: a language of ISO 639-1, then if need be a script of ISO 15924 and
/// a region of ISO 3166-1, with hyphens; or `x-default`. The case of letters does not count, but
/// for `UK`, which is no region and in lower case Ukrainian.
///
/// # Errors
/// What to write instead.
pub fn check(code: &[u8]) -> Result<(), String> {
    if code.eq_ignore_ascii_case(b"x-default") {
        return Ok(());
    }
    let shown = String::from_utf8_lossy(&code[..code.len().min(40)]).into_owned();
    if !code.is_ascii() || code.is_empty() {
        return Err(format!("{shown:?} is no language code; write for example de or de-CH"));
    }
    if code.contains(&b'_') {
        return Err(format!("{shown:?} has an underscore; write {}", shown.replace('_', "-")));
    }
    let mut parts = code.split(|byte| *byte == b'-');
    let language = parts.next().unwrap_or_default();
    let alone = language.len() == code.len();
    if alone && language == b"UK" {
        return Err("\"UK\" alone is no language; write en-GB, or uk for Ukrainian".into());
    }
    if language.len() != 2 || !listed(LANGUAGES, language) {
        if alone && is_region(language) {
            let region = shown.to_ascii_uppercase();
            return Err(format!(
                "{shown:?} is a region without a language; write for example en-{region}"
            ));
        }
        if language.len() == 3 {
            return Err(format!("{shown:?} has three letters; write the two of ISO 639-1"));
        }
        return Err(format!("{shown:?} names no language of ISO 639-1; write for example de"));
    }
    let mut next = parts.next();
    if let Some(script) = next
        && script.len() == 4
        && script.iter().all(u8::is_ascii_alphabetic)
    {
        next = parts.next();
    }
    let Some(region) = next else { return Ok(()) };
    let language = &shown[..2];
    if parts.next().is_some() {
        return Err(format!("{shown:?} has too many parts; write language-REGION"));
    }
    if is_region(region) {
        return Ok(());
    }
    Err(match region.to_ascii_uppercase().as_slice() {
        b"UK" => format!("{shown:?}: the code of the United Kingdom is GB; write {language}-GB"),
        b"EU" | b"UN" => format!("{shown:?} names no country; write {language} alone"),
        digits if digits.iter().all(u8::is_ascii_digit) && !digits.is_empty() => {
            format!("{shown:?}: regions by number are not understood; write {language} alone")
        }
        _ => format!("{shown:?} names no country of ISO 3166-1; write {language} alone"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        for good in [
            "de",
            "DE",
            "de-CH",
            "de-ch",
            "zh-Hans",
            "zh-hant-TW",
            "x-default",
            "X-Default",
            "uk",
            "en-GB",
            "sr-Latn-RS",
            "uk-UA",
        ] {
            assert_eq!(check(good.as_bytes()), Ok(()), "{good}");
        }
        for (wrong, hint) in [
            ("en_US", "write en-US"),
            ("UK", "en-GB"),
            ("US", "en-US"),
            ("us", "en-US"),
            ("es-419", "write es alone"),
            ("en-UK", "write en-GB"),
            ("en-EU", "write en alone"),
            ("eng", "three letters"),
            ("", "write for example"),
            ("xx", "ISO 639-1"),
            ("de-", "ISO 3166-1"),
            ("de-DE-x", "too many parts"),
            ("de-DEUT-XX", "ISO 3166-1"),
            ("d", "ISO 639-1"),
            ("dé", "language code"),
            ("de\"><", "ISO 639-1"),
        ] {
            let message = check(wrong.as_bytes()).unwrap_err();
            assert!(message.contains(hint), "{wrong}: {message}");
        }
        assert!(check(b"\xff\xff").is_err());
        assert!(is_region(b"FR") && !is_region(b"UK") && !is_region(b"F") && !is_region(b"D A"));
    }

    #[test]
    fn lists_are_whole() {
        assert_eq!(REGIONS.split(' ').count(), 249);
        for list in [LANGUAGES, REGIONS] {
            let codes: Vec<&str> = list.split(' ').collect();
            assert!(codes.iter().all(|code| code.len() == 2));
            assert!(codes.is_sorted_by(|a, b| a < b));
        }
    }
}
