"""The management command of the migration guide, in a Django project, against its own sitemap."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from lxml import etree

pytest.importorskip("django", reason="the migration guide has a management command")
pytestmark = pytest.mark.long

PROJECT = """
import datetime
import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django.contrib.sitemaps", "shop"], ALLOWED_HOSTS=["*"],
    USE_TZ=True, TIME_ZONE="UTC",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}},
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", ROOT_URLCONF="urls",
)
django.setup()
from django.core.management import call_command
from django.db import connection
from django.test import Client
from shop.models import Product

with connection.schema_editor() as editor:
    editor.create_model(Product)
day = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.timezone.utc)
Product.objects.bulk_create(
    Product(
        slug=f"lamp {n}" if n % 7 else f"länge-{n}&co", active=n % 10 > 0,
        # no row of the first batch has a time
        updated_at=day + datetime.timedelta(hours=n) if n > 10_000 else None,
    )
    for n in range(12_000)
)
call_command("sitemaps")
answer = Client().get("/sitemap.xml", secure=True, headers={"host": "www.shop.example"})
open("django.xml", "wb").write(answer.content)
"""
MODELS = """
from django.db import models

class Product(models.Model):
    slug = models.TextField()
    active = models.BooleanField()
    updated_at = models.DateTimeField(null=True)
"""
URLS = """
from urllib.parse import quote
from django.contrib.sitemaps import Sitemap
from django.contrib.sitemaps.views import sitemap
from django.urls import path
from shop.models import Product

class Products(Sitemap):
    def items(self):
        return Product.objects.filter(active=True).order_by("id")

    def location(self, item):
        return f"/products/{quote(item.slug)}"

    def lastmod(self, item):
        return item.updated_at

urlpatterns = [path("sitemap.xml", sitemap, {"sitemaps": {"products": Products}})]
"""


def entries(data: bytes) -> list[tuple[str, str]]:
    """Location and day of each entry."""
    name = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    return [
        (url.findtext(f"{name}loc", ""), url.findtext(f"{name}lastmod", "")[:10])
        for url in etree.fromstring(data)
    ]


def test_the_command_writes_the_urls_of_django(tmp_path: Path) -> None:
    guide = (ROOT / "docs/guides/migrate.md").read_text(encoding="utf-8")
    [command] = re.findall(
        r"^```python\n(import itertools.*?)^```$", guide, re.DOTALL | re.MULTILINE
    )
    assert "/srv/sitemaps" in command
    files = {
        "project.py": PROJECT, "urls.py": URLS, "shop/__init__.py": "", "shop/models.py": MODELS,
        "shop/management/__init__.py": "", "shop/management/commands/__init__.py": "",
        "shop/management/commands/sitemaps.py": command.replace("/srv/sitemaps", "out"),
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "project.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, "10800 URLs, 0 rejected\n"), done.stderr
    [shard] = (tmp_path / "out").glob("*.xml.gz")
    ours = entries(gzip.decompress(shard.read_bytes()))
    assert ours == entries((tmp_path / "django.xml").read_bytes())
    assert {bool(day) for _, day in ours} == {True, False}
