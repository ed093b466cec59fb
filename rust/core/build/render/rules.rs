//! The rules of a run for its rows: what all renderers share.

use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::build::render::loc::{Folder, Hosts, LocRules, Site};
use crate::build::render::plan::{Mapped, Plan, ValueSource};
use crate::config::{Config, Epoch, Layout, OldPolicy, OnBadField, Output};
use crate::error::{ErrorCode, Result};
use crate::flow::cell::Cell;
use crate::flow::chunk::Chunk;
use crate::flow::hash::HashKey;
use crate::flow::order::LocRange;
use crate::flow::sample::Rate;
use crate::flow::stamps::Stamps;
use crate::sitemap::age::AgeBounds;
use crate::sitemap::changefreq;
use crate::sitemap::characters::trim;
use crate::sitemap::date::{Lastmod, local_to_instant};
use crate::sitemap::extension;
use crate::sitemap::extension::record::record;
use crate::sitemap::priority;
use crate::sitemap::value::ValueKind;

/// Limit of the characters of a percent-encoded URL (docs/protocol.md).
const MAX_CHARS: usize = 2_047;

pub(crate) const LASTMOD_WRONG: &str =
    "is not a complete date (2026-11-20, or with a time); a year or month alone is not enough";
pub(crate) const CHANGEFREQ_WRONG: &str =
    "is none of always, hourly, daily, weekly, monthly, yearly, never";
pub(crate) const PRIORITY_WRONG: &str = "is not a number from 0.0 to 1.0";

/// The rules that all renderers of a run share.
pub struct Rules {
    pub(crate) loc: LocRules,
    /// for the URLs of extensions: any host
    pub(crate) any: LocRules,
    pub(crate) zone: Option<TimeZone>,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) omit: bool,
    pub(crate) text: bool,
    pub(crate) max_bytes: u64,
    /// for each extension the policy for its old blocks
    pub(crate) old_policy: Vec<OldPolicy>,
    pub(crate) now: i64,
    /// the key of the hashes of groups of languages, and of the sample
    pub(crate) group_key: HashKey,
    /// the key of the loc hashes, if duplicates are looked for
    pub(crate) key: Option<HashKey>,
    /// the sampling rate of locs, to find locs that are nearly equal
    pub(crate) rate: Rate,
    /// the ages of lastmods are counted
    pub(crate) ages: Option<AgeBounds>,
    /// locs are hashed for the stable layout
    pub(crate) boundaries: bool,
    /// the rows are to ascend by loc
    ordered: bool,
    /// the stamps of the last build, if content decides lastmod
    pub(crate) stamps: Option<Arc<Stamps>>,
}

impl Rules {
    /// Checks the parts of the configuration that concern rows. With a key, locs are hashed.
    pub fn new(config: &Config, key: Option<HashKey>) -> Result<Rules> {
        let site = Site::parse(&config.site)?;
        let hosts = match config.hosts.as_str() {
            "same" => Hosts::Same,
            "any" => Hosts::Any,
            list => Hosts::List(list.split(',').map(|host| host.trim().to_owned()).collect()),
        };
        let folder = config.sitemap_url.as_deref().map(Folder::parse).transpose()?;
        let any = LocRules::new(site.clone(), Hosts::Any, config.strict_urls, MAX_CHARS, None)?
            .joining(config.relative_urls);
        let loc = LocRules::new(site, hosts, config.strict_urls, config.max_loc as usize, folder)?
            .joining(config.relative_urls);
        let zone = config.timezone.as_deref().map(|name| {
            TimeZone::get(name).map_err(|_| {
                ErrorCode::ConfigTimezone.error(format!(
                    "{name:?} is not a time zone; write one such as Europe/Berlin or UTC"
                ))
            })
        });
        Ok(Rules {
            loc,
            any,
            zone: zone.transpose()?,
            epoch: config.lastmod_epoch,
            omit: config.on_bad_field == OnBadField::Omit,
            text: config.output == Output::Text,
            max_bytes: config.max_bytes,
            old_policy: (extension::ALL.iter())
                .map(|extension| config.mapping.old_policy(extension))
                .collect(),
            now: config.mapping.now,
            ages: config.ages.then(|| AgeBounds::of_orders(config.mapping.now)),
            group_key: HashKey::random(),
            rate: Rate::default(),
            key,
            boundaries: config.layout == Layout::Stable,
            ordered: config.ordered,
            stamps: None,
        })
    }

    /// Determines the range of the locs of a chunk, if the rows are ordered. The thread that made the
    /// chunk does so, while it is in its cache.
    pub fn note_range(&self, chunk: &mut Chunk) {
        if self.ordered {
            chunk.range = LocRange::of(&chunk.bytes, &chunk.entries, self.text);
        }
    }

    /// The same rules for a build in which content decides lastmod.
    pub fn with_stamps(self, stamps: Option<Arc<Stamps>>) -> Rules {
        Rules { stamps, ..self }
    }

    #[inline]
    pub(crate) fn lastmod(&self, cell: &Cell<'_>) -> Option<Lastmod> {
        match *cell {
            Cell::Text(text) => match self.epoch {
                Some(_) => {
                    let digits = std::str::from_utf8(text).ok()?.trim();
                    self.since_epoch(digits.parse().ok()?)
                }
                None => Lastmod::parse(text, self.zone.as_ref()),
            },
            Cell::Date(days) => Lastmod::from_days(days),
            Cell::Instant(seconds) => Lastmod::from_seconds(seconds),
            Cell::Local(seconds) => match &self.zone {
                Some(zone) => Lastmod::from_seconds(local_to_instant(seconds, zone)?),
                None => Lastmod::from_seconds(seconds),
            },
            Cell::Int(n) => self.since_epoch(n),
            Cell::UInt(n) => self.since_epoch(n.try_into().ok()?),
            // pandas stores integers with gaps as floats
            Cell::Float(n) if n.fract() == 0.0 && n.abs() < 9e15 => self.since_epoch(n as i64),
            _ => None,
        }
    }

    fn since_epoch(&self, n: i64) -> Option<Lastmod> {
        match self.epoch? {
            Epoch::Seconds => Lastmod::from_seconds(n),
            Epoch::Milliseconds => Lastmod::from_seconds(n.div_euclid(1_000)),
        }
    }
}

/// Checks the constants of the mapping like values of rows.
pub fn check_constants(rules: &Rules, plan: &Plan) -> Result<()> {
    let wrong = |field: &str, value: &[u8], what: &str| {
        let value = String::from_utf8_lossy(value).into_owned();
        Err(ErrorCode::ConfigConstant.error(format!("{field}: {value:?} {what}")))
    };
    if let Some(ValueSource::Constant(value)) = &plan.lastmod
        && rules.lastmod(&Cell::Text(value)).is_none()
    {
        return wrong("lastmod", value, LASTMOD_WRONG);
    }
    if let Some(ValueSource::Constant(value)) = &plan.changefreq
        && changefreq::parse(value).is_none()
    {
        return wrong("changefreq", value, CHANGEFREQ_WRONG);
    }
    if let Some(ValueSource::Constant(value)) = &plan.priority
        && priority::from_text(value).is_none()
    {
        return wrong("priority", value, PRIORITY_WRONG);
    }
    for (place, mapped) in &plan.blocks {
        let Mapped::Fields(sources) = mapped else { continue };
        for (field, source) in record(*place).fields.iter().zip(sources) {
            if let (Some(ValueKind::Url(_)), Some(ValueSource::Constant(value))) =
                (field.shape.kind(), source)
                && !trim(value).is_empty()
                && let Err(fault) = rules.any.encode(value, &mut Vec::new())
            {
                let name = format!("{}:{}", extension::ALL[*place].name, field.name);
                return wrong(&name, value, fault.message());
            }
        }
    }
    Ok(())
}
