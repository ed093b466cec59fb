//! The mapping of the extensions, resolved for one input.

use crate::build::render::plan::{Alternates, GroupColumns, Mapped, Resolver, ValueSource};
use crate::config::Mapping;
use crate::error::{ErrorCode, Result};
use crate::sitemap::extension::record::Record;
use crate::sitemap::hreflang::{self, CodePolicy};

impl Resolver<'_> {
    pub(crate) fn images(&mut self, names: &[String]) -> Result<()> {
        for name in names {
            let slot = self.any_slot("image", name)?;
            self.plan.images.push(slot);
        }
        if !names.is_empty() {
            self.choose("image", &names.join(", "), false);
        }
        Ok(())
    }

    pub(crate) fn alternates(&mut self, mapping: &Mapping) -> Result<()> {
        let code = |option: &str, code: &Option<String>| match code {
            None => Ok(None),
            Some(code) => match hreflang::check(code.as_bytes(), CodePolicy::Write) {
                Ok(()) => Ok(Some(code.clone().into_bytes())),
                Err(what) => Err(ErrorCode::ConfigLanguage.error(format!("--{option}: {what}"))),
            },
        };
        let mut found = Alternates {
            lang: code("lang", &mapping.lang)?,
            x_default: code("x-default", &mapping.x_default)?,
            rows: mapping.alternate_rows,
            ..Alternates::default()
        };
        for (language, column) in &mapping.alternate {
            let slot = self.any_slot("alternate", column)?;
            match code("alternate", language)? {
                None => found.whole.push(slot),
                Some(code) => {
                    let same = |(known, _): &(Vec<u8>, usize)| known.eq_ignore_ascii_case(&code);
                    if found.columns.iter().any(same) {
                        let text = String::from_utf8_lossy(&code);
                        return Err(ErrorCode::ConfigLanguage
                            .error(format!("--alternate: {text} is given twice")));
                    }
                    found.columns.push((code, slot));
                }
            }
        }
        if let Some(column) = &mapping.alternate_group {
            if !mapping.alternate.is_empty() || found.rows {
                return Err(ErrorCode::ConfigAlternate.error(
                    "give --alternate-group, or --alternate with --alternate-rows, not both",
                ));
            }
            let language = match (&mapping.lang_column, &found.lang) {
                (Some(column), _) => ValueSource::Slot(self.slot("lang_column", column)?),
                (None, Some(code)) => ValueSource::Constant(code.clone()),
                (None, None) => {
                    return Err(ErrorCode::ConfigAlternate.error(
                        "--alternate-group needs the language of each row (--lang-column COL)",
                    ));
                }
            };
            let key = self.slot("alternate_group", column)?;
            found.group = Some(GroupColumns { key, language });
            self.choose("alternate", &format!("rows that share {column}"), false);
            self.plan.alternates = Some(found);
            return Ok(());
        }
        if mapping.alternate.is_empty() {
            if found.rows || mapping.x_default.is_some() || mapping.lang_column.is_some() {
                return Err(ErrorCode::ConfigAlternate.error("no columns for the alternates are given (--alternate de=COL, --alternate-group COL)"));
            }
            return Ok(());
        }
        if let Some(wanted) = &found.x_default
            && found.whole.is_empty()
            && !(found.columns.iter().map(|(code, _)| code))
                .chain(&found.lang)
                .any(|code| code.eq_ignore_ascii_case(wanted))
        {
            let text = String::from_utf8_lossy(wanted);
            return Err(ErrorCode::ConfigLanguage.error(format!(
                "--x-default: no column contains the URLs of {text} (--alternate {text}=COL)"
            )));
        }
        self.choose("alternate", &described(&mapping.alternate), false);
        self.plan.alternates = Some(found);
        Ok(())
    }

    /// The source of each field of a record, or one column of structs.
    pub(crate) fn mapped(
        &mut self,
        option: &'static str,
        record: &Record,
        given: &[(Option<String>, String)],
    ) -> Result<Option<Mapped>> {
        if given.is_empty() {
            return Ok(None);
        }
        self.choose(option, &described(given), false);
        if let [(None, column)] = given {
            return Ok(Some(Mapped::Whole(self.any_slot(option, column)?)));
        }
        let mut sources = vec![None; record.fields.len()];
        for (name, source) in given {
            let Some(name) = name else {
                let help = "give one column of structs, or TAG=COL for each tag";
                let message = format!("--{option}: {source:?}: {help}");
                return Err(ErrorCode::ConfigTag.error(message));
            };
            let Some(place) = record.mapped().position(|field| field.name == name) else {
                let known: Vec<&str> = record.mapped().map(|field| field.name).collect();
                let known = known.join(", ");
                let message =
                    format!("--{option}: there is no tag {name:?}; the tags are: {known}");
                return Err(ErrorCode::ConfigTag.error(message));
            };
            sources[place] = Some(match source.strip_prefix('=') {
                Some(constant) => ValueSource::Constant(constant.as_bytes().to_vec()),
                None => ValueSource::Slot(self.any_slot(option, source)?),
            });
        }
        Ok(Some(Mapped::Fields(sources)))
    }
}

/// A mapping in the form of the command line.
fn described(given: &[(Option<String>, String)]) -> String {
    let one = |(key, from): &(Option<String>, String)| match key {
        Some(key) => format!("{key}={from}"),
        None => from.clone(),
    };
    given.iter().map(one).collect::<Vec<_>>().join(", ")
}
