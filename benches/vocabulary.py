"""The words of the generated catalogs: real ones first, coined brand and series names after them.

A list of fifty words would compress 5.4 times at level 1 and flatter every measurement; with a
few thousand words drawn by a Zipf-like law the sitemaps compress as real ones do (4.1 to 4.6).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def _split(text: str) -> list[str]:
    return text.split()


DEPARTMENTS = _split("""
women/dresses women/shoes women/jackets women/accessories men/shoes men/shirts men/jackets men/jeans
kids/toys kids/clothing kids/school baby/strollers baby/nursery home/kitchen home/bedding home/decor
home/lighting home/storage garden/tools garden/furniture garden/plants electronics/phones
electronics/audio electronics/laptops electronics/tablets electronics/cameras electronics/tv
electronics/cables computers/components computers/printers computers/monitors sports/running
sports/cycling sports/camping sports/fitness sports/football beauty/skin-care beauty/hair
beauty/perfume health/vitamins pets/dogs pets/cats books/fiction books/science office/paper
office/chairs car/tyres car/oil-and-care diy/power-tools diy/paint diy/bathroom music/guitars
""")

# Most frequent first: the rank decides how often a word is drawn.
REAL_WORDS = _split("""
black set white men women cotton with pack blue pro steel mini case for wireless led kids large
red grey leather classic usb green bag light shoes jacket premium water gold long glass wood home
travel sport cover silver digital portable soft pink small table box watch outdoor dress bottle
holder kitchen chair charger waterproof brown cable stainless garden electric smart lamp running
slim knife cotton-blend shirt jeans trousers skirt sweater hoodie coat boots sandals sneakers
socks belt scarf hat cap gloves wallet backpack suitcase necklace ring bracelet earrings
sunglasses phone tablet laptop monitor keyboard mouse headphones speaker camera lens tripod
printer router adapter battery screen protector stand mount bulb torch fan heater kettle toaster
blender mixer pan pot plate bowl cup mug fork spoon tray basket shelf drawer wardrobe bed mattress
pillow duvet sheet towel curtain carpet rug mirror frame clock vase candle plant seed soil
pot-plant hose rake spade shovel saw drill hammer screwdriver wrench pliers nail screw bolt paint
brush roller ladder tape glue sealant tile tap sink shower toilet bath soap shampoo conditioner
cream serum lotion mask perfume lipstick mascara powder razor trimmer dryer straightener vitamin
protein creatine bar shake ball racket bat net goal helmet pads bike tyre tube pump lock saddle
pedal chain tent sleeping mat stove cooler rope compass map dog cat fish bird leash collar toy
puzzle doll car truck train blocks game book novel atlas guide diary pen pencil marker paper
notebook folder stapler scissors desk lamp-shade sofa armchair bench stool bookcase vintage modern
rustic nordic elegant casual formal slim-fit oversized cropped padded quilted knitted woven
printed striped checked floral plain matte glossy brushed polished folding adjustable rechargeable
cordless magnetic foldable reusable organic recycled vegan handmade heavy-duty lightweight
breathable windproof fleece denim linen wool silk velvet satin polyester nylon rubber silicone
ceramic bamboo oak walnut pine birch marble brass copper aluminium titanium carbon chrome beige
ivory navy turquoise purple violet orange yellow olive burgundy caf%C3%A9 cr%C3%A8me b%C3%BCro-set
d%C3%A9cor lila khaki charcoal anthracite teal mint coral peach lilac xl xxl 3-pack 6-pack 10-pack
500ml 750ml 1l 2l 5l 250g 500g 1kg 5kg 10kg 10cm 20cm 30cm 50cm 100cm 120x60 140x200 160x200
90x200 a4 a5 13-inch 15-inch 27-inch 55-inch 65w 100w 1000w 2000w 12v 18v 20v 230v 5000mah
10000mah 64gb 128gb 256gb 512gb 1tb 2tb 4k hd full-hd hdmi type-c bluetooth wifi 5g
""")

QUERIES = _split("""
?color=black&size=m ?color=white&size=l ?color=navy&size=xl ?variant=2 ?variant=3&pack=6
?size=42&width=regular ?size=44&width=wide ?sku=alt&ref=feed
""")

_ONSETS = _split("b br c ch d dr f fl g gr h j k kl l m n p pr qu r s sh st t tr v w x z")
_VOWELS = _split("a e i o u ai ea io oo")
_CODAS = ["", *_split("l n r s x nd rk st th"), ""]


def words(count: int) -> list[str]:
    """The first `count` words of the vocabulary, most frequent first; always the same ones."""
    coined: dict[str, None] = dict.fromkeys(REAL_WORDS)
    bits = np.random.PCG64(20_260_101)  # the vocabulary is fixed: only what is drawn has a seed

    def pick(choices: list[str]) -> str:
        return choices[int(bits.random_raw()) % len(choices)]

    while len(coined) < count:
        shape = int(bits.random_raw()) % 4
        if shape == 0:  # a series name: kx4120
            name = f"{pick(_ONSETS)}{pick(_ONSETS)[0]}{int(bits.random_raw()) % 9000 + 10}"
        else:
            name = "".join(pick(_ONSETS) + pick(_VOWELS) for _ in range(shape)) + pick(_CODAS)
        if len(name) >= 4:
            coined.setdefault(name)
    return list(coined)[:count]


def zipf_table(count: int, exponent: float, size: int = 1 << 16) -> npt.NDArray[np.uint16]:
    """`size` draws laid out by rank: indexing it with 16 random bits is a draw by Zipf's law."""
    weights = 1.0 / np.power(np.arange(count) + 8.0, exponent)
    edges = np.cumsum(weights) / weights.sum()
    middle = (np.arange(size) + 0.5) / size
    return np.minimum(np.searchsorted(edges, middle), count - 1).astype(np.uint16)
