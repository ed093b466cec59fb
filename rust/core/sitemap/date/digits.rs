//! Digits of dates, eight characters at once.

/// A form as a parameter that is known when the program is compiled.
pub(super) const fn form(form: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*form)
}

/// All bits of the bytes of a form that stand for themselves.
pub(super) const fn separators(form: u64) -> u64 {
    let (mut bytes, mut at) = (form.to_le_bytes(), 0);
    while at < 8 {
        bytes[at] = if bytes[at] == b'0' { 0 } else { 0xff };
        at += 1;
    }
    u64::from_le_bytes(bytes)
}

/// Checks eight bytes at once against a form, in which `0` stands for any digit and any other
/// character for itself. In the result, the position of the first of two digits has their number.
#[inline]
pub(super) fn pairs<const FORM: u64>(text: &[u8; 8]) -> Option<[u8; 8]> {
    let digits = u64::from_le_bytes(*text) ^ FORM;
    // Each byte plus its limit reaches 0x80 when it is too large: above 9 for a
    // digit, above 0 elsewhere. A carry only comes from a byte that is 0x80 itself.
    let limits = const { 0x7676_7676_7676_7676 | separators(FORM) & 0x7f7f_7f7f_7f7f_7f7f };
    let sums = digits.wrapping_add(limits);
    if (sums | digits) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    Some((digits * 10 + (digits >> 8)).to_le_bytes())
}

#[inline]
pub(super) fn two(tens: u8, ones: u8) -> Option<u32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then_some(u32::from(tens) * 10 + u32::from(ones))
}

/// Four numbers below 100 in two digits each.
#[inline]
pub(super) fn digits([a, b, c, d]: [u32; 4]) -> [u8; 8] {
    let numbers = u64::from(a | b << 16) | u64::from(c | d << 16) << 32;
    // n * 103 / 1024 is n / 10 for n < 100; no lane of 16 bits overflows.
    let tens = ((numbers * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = numbers - tens * 10;
    (tens | ones << 8 | 0x3030_3030_3030_3030).to_le_bytes()
}

/// The digits of a text whose other characters are those of the template.
#[inline]
pub(super) fn match_digits<const FORM: u64>(text: &[u8; 8]) -> Option<[u8; 8]> {
    // a digit becomes its value, an equal separator 0
    let values = u64::from_le_bytes(*text) ^ FORM;
    let above_nine = (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
    if above_nine != 0 || values & const { separators(FORM) } != 0 {
        return None;
    }
    Some(values.to_le_bytes())
}
