//! An extension that is only a descriptor, from a cell to XML, findings and columns.

use std::fs;
use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use serde_json::{Value, json};
use urlset_core::build::pipeline::{Preview, preview};
use urlset_core::build::read::csv::{Csv, CsvOptions};
use urlset_core::config::Config;
use urlset_core::inspect::read::read;
use urlset_core::inspect::verify::{Options, Target, verify};
use urlset_core::sitemap::extension::{named, record};
use urlset_core::sitemap::namespaces;

const URL: &str = "https://shop.example/page";

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("urlset-pagemap-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The result of a build with these cells, with the column mapped as `field`.
fn build(name: &str, field: Option<&str>, cells: &[Value], on_bad_field: &str) -> Preview {
    let path = scratch(name).join("catalog.csv");
    let text = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
    let quoted = |cell: &Value| format!("\"{}\"", text(cell).replace('"', "\"\""));
    let rows: Vec<_> =
        cells.iter().enumerate().map(|(i, cell)| format!("{URL}{i},{}\n", quoted(cell))).collect();
    fs::write(&path, format!("loc,map\n{}", rows.concat())).unwrap();
    let config = json!({
        "site": "https://shop.example",
        "on_bad_field": on_bad_field,
        "pagemap": [[field, "map"]],
    });
    let config = Config::from_json(&config.to_string()).unwrap();
    let options = CsvOptions {
        delimiter: None,
        encoding: None,
        max_cell: 1 << 20,
        block: 1 << 20,
        lines: false,
    };
    let source = Csv::new(path.to_str().unwrap(), options);
    preview(&config, Box::new(source), 100).unwrap()
}

fn file(name: &str, urls: &str) -> PathBuf {
    let path = scratch(name).join("sitemap.xml");
    fs::write(&path, namespaces::header(namespaces::ALL) + urls + namespaces::FOOTER).unwrap();
    path
}

/// The codes that `verify` finds in a file.
fn findings(name: &str, urls: &str) -> Vec<&'static str> {
    let target = Target {
        path: file(name, urls),
        name: "sitemap.xml".into(),
        url: None,
        listed: false,
        rules: 0,
    };
    let reports = verify(&[target], &Options::default(), &mut || false).unwrap();
    reports[0].findings.iter().map(|finding| finding.code.name).collect()
}

fn url(inside: &str) -> String {
    format!("<url><loc>{URL}</loc>{inside}</url>\n")
}

fn objects() -> Value {
    json!([
        { "type": "document", "id": "x\ty",
          "attributes": [{ "name": "title", "value": "A < B" }, { "name": "n", "value": 7 }] },
        { "type": "empty" },
    ])
}

const WRITTEN: &str = "<pagemap:PageMap><pagemap:DataObject type=\"document\" id=\"x&#9;y\">\
     <pagemap:Attribute name=\"title\">A &lt; B</pagemap:Attribute>\
     <pagemap:Attribute name=\"n\">7</pagemap:Attribute></pagemap:DataObject>\
     <pagemap:DataObject type=\"empty\"></pagemap:DataObject></pagemap:PageMap>";

#[test]
fn cells_become_elements() {
    let whole = json!({ "objects": objects() });
    for (name, field, cell) in [("field", Some("objects"), objects()), ("whole", None, whole)] {
        let built = build(name, field, &[cell, json!("")], "reject");
        let written = url(WRITTEN).replace(URL, &format!("{URL}0"));
        let bare = format!("<url><loc>{URL}1</loc></url>");
        assert_eq!(built.urls, [written.trim_end(), &bare], "{name}");
        assert!(built.notes.is_empty() && built.rejected.is_empty());
        assert_eq!(built.mapping.last().unwrap().field, "pagemap");
    }
}

#[test]
fn invalid_values_are_left_out_and_counted_or_reject_the_row() {
    let cells = [
        json!([{ "id": "no type" }, { "type": "kept" }]),
        json!([{ "type": "t", "attributes": [{ "name": "no value" }, { "value": "no name" }] }]),
        json!("not a list"),
    ];
    let built = build("omit", Some("objects"), &cells, "omit");
    assert!(built.urls[0].contains("<pagemap:DataObject type=\"kept\"></pagemap:DataObject></p"));
    assert!(built.urls[1].contains("<pagemap:DataObject type=\"t\"></pagemap:DataObject>"));
    assert!(!built.urls[2].contains("pagemap"));
    let counted: Vec<_> = built.notes.iter().map(|(code, count)| (*code, *count)).collect();
    let wanted =
        [("pagemap.name", 1), ("pagemap.objects", 1), ("pagemap.type", 1), ("pagemap.value", 1)];
    assert_eq!(counted, wanted);
    let built = build("reject", Some("objects"), &cells, "reject");
    let rejected: Vec<_> = built.rejected.keys().copied().collect();
    assert_eq!(rejected, ["pagemap.objects", "pagemap.type", "pagemap.value"]);
    let (place, extension) = named("pagemap").unwrap();
    let warnings = record::warnings(place);
    for (code, _) in wanted {
        assert!(warnings.iter().any(|(known, text)| known == code && !text.is_empty()), "{code}");
    }
    assert_eq!(extension.options.len(), 1);
}

#[test]
fn verify_checks_elements_and_attributes() {
    assert_eq!(findings("sound", &url(WRITTEN)), [] as [&str; 0]);
    let object =
        |inside: &str| format!("<pagemap:DataObject type=\"t\">{inside}</pagemap:DataObject>");
    let map = |inside: &str| url(&format!("<pagemap:PageMap>{inside}</pagemap:PageMap>"));
    let again = WRITTEN.repeat(2);
    for (name, urls, code) in [
        ("none", map(""), "element.missing"),
        ("type", map("<pagemap:DataObject id=\"x\"/>"), "element.attribute"),
        ("name", map(&object("<pagemap:Attribute>v</pagemap:Attribute>")), "element.attribute"),
        ("empty", map(&object("<pagemap:Attribute name=\"n\"/>")), "element.empty"),
        ("unknown", map(&object("<pagemap:Other/>")), "element.unknown"),
        ("text", map("text"), "element.text"),
        ("twice", url(&again), "pagemap.repeated"),
    ] {
        assert!(findings(name, &urls).contains(&code), "{name}: {:?}", findings(name, &urls));
    }
}

#[test]
fn read_returns_a_column_of_structs() {
    let path = file("read", &(url(WRITTEN) + &url("")));
    let batches: Vec<RecordBatch> =
        read(vec![(path, "sitemap.xml".into())], 1, false).collect::<Result<_, _>>().unwrap();
    let column = batches[0].column_by_name("pagemap").unwrap().as_struct();
    assert_eq!((column.is_null(0), column.is_null(1)), (false, true));
    let objects = column.column_by_name("objects").unwrap().as_list::<i32>().value(0);
    let objects = objects.as_struct();
    let texts = |column: &dyn Array| -> Vec<Option<String>> {
        column.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
    };
    assert_eq!(
        texts(objects.column_by_name("type").unwrap()),
        [Some("document".to_owned()), Some("empty".to_owned())]
    );
    assert_eq!(texts(objects.column_by_name("id").unwrap()), [Some("x\ty".to_owned()), None]);
    let attributes = objects.column_by_name("attributes").unwrap().as_list::<i32>();
    assert!(attributes.is_null(1));
    let first = attributes.value(0);
    let values = first.as_struct().column_by_name("value").unwrap();
    assert_eq!(texts(values), [Some("A < B".to_owned()), Some("7".to_owned())]);
}
