//! Any text as CSV: up to the first fault, rows and cells are those of csv-core, for any
//! selected columns; no panic.
#![no_main]

use csv_core::{ReadRecordResult, ReaderBuilder};
use libfuzzer_sys::fuzz_target;
use urlset_core::build::read::scan::{CsvFormat, NO_SLOT, Scanner, Span, undouble_if};
use urlset_core::simd::csv_masks;

const DELIMITERS: &[u8] = b",;\t|a";
/// Columns that have a slot, the slots in any order, as a mapping may select them.
const SLOTS: [&[u32]; 4] = [&[0, 1, 2, 3], &[NO_SLOT, 1, NO_SLOT, 0], &[2, 0, 1], &[]];

type Cells = Vec<Vec<u8>>;

fn oracle(text: &[u8], delimiter: u8) -> Vec<Cells> {
    let mut reader = ReaderBuilder::new().delimiter(delimiter).build();
    let (mut out, mut ends) = (vec![0; text.len() + 16], vec![0; text.len() + 16]);
    let (mut rest, mut filled, mut count) = (text, 0, 0);
    let mut rows = Vec::new();
    loop {
        let (result, read, wrote, ended) =
            reader.read_record(rest, &mut out[filled..], &mut ends[count..]);
        rest = &rest[read..];
        (filled, count) = (filled + wrote, count + ended);
        match result {
            ReadRecordResult::InputEmpty => {}
            ReadRecordResult::Record => {
                let starts = std::iter::once(0).chain(ends[..count].iter().copied());
                rows.push(starts.zip(&ends[..count]).map(|(a, &b)| out[a..b].to_vec()).collect());
                (filled, count) = (0, 0);
            }
            ReadRecordResult::End => return rows,
            full => panic!("{full:?} in spite of the room"),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let [first, second, text @ ..] = data else { return };
    let delimiter = DELIMITERS[usize::from(*first) % DELIMITERS.len()];
    let slots = SLOTS[usize::from(*second) % SLOTS.len()];
    let max_cell = if *second >= 0x80 { 9 } else { 1 << 20 };
    let format = CsvFormat { delimiter, max_cell, slots: slots.to_vec(), ..CsvFormat::default() };
    let mut masks = Vec::new();
    let seen = csv_masks(text, delimiter, &mut masks);
    assert_eq!((seen.ascii, seen.nul), (text.is_ascii(), text.contains(&0)));
    let mut scanner = Scanner::new(text, &masks, &format);
    let mut spans = vec![Span::default(); slots.iter().filter(|slot| **slot != NO_SLOT).count()];
    let expected = oracle(text, delimiter);
    let mut wanted = expected.iter();
    while let Some(row) = scanner.next_row(&mut spans) {
        let Ok(row) = row else { return };
        let cells = wanted.next().expect("csv-core has no further row");
        assert_eq!(row.cells as usize, cells.len());
        assert!(cells.iter().all(|cell| cell.len() <= max_cell));
        for (cell, &slot) in cells.iter().zip(slots).filter(|(_, slot)| **slot != NO_SLOT) {
            let span = spans[slot as usize];
            let mut found = Vec::new();
            let raw = &text[span.start as usize..span.end as usize];
            undouble_if(raw, span.doubled, &mut found);
            assert_eq!(found, *cell);
        }
    }
    assert!(wanted.next().is_none(), "csv-core has a further row");
});
