"""PDF files that unpack to too much, refer to themselves, or claim absurd pages."""

from __future__ import annotations

import zlib


def pdf(objects: list[str | bytes], root: int = 1) -> bytes:
    """A file of these objects, numbered from 1."""
    file, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(file))
        body = content.encode("latin-1") if isinstance(content, str) else content
        file += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(file)
    size = len(objects) + 1
    file += b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table)
    return file + b"trailer\n<</Size %d/Root %d 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, root, start)


def stream(data: bytes, dictionary: str = "", packed: bool = True) -> bytes:
    body = zlib.compress(data, 9) if packed else data
    filters = "/Filter/FlateDecode" if packed else ""
    return f"<</Length {len(body)}{filters}{dictionary}>>\nstream\n".encode() + body + b"\nendstream"


FONT = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"


def page(content: bytes, box: str = "0 0 600 800", extra: str = "", count: int = 1) -> bytes:
    """`count` pages that show the same content."""
    kids = " ".join(["3 0 R"] * count)
    return pdf(
        [
            "<</Type/Catalog/Pages 2 0 R>>",
            f"<</Type/Pages/Kids[{kids}]/Count {count}>>",
            f"<</Type/Page/Parent 2 0 R/MediaBox[{box}]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>{extra}>>>>",
            content,
            FONT,
        ]
    )


def words(text: str = "Some words", count: int = 1) -> bytes:
    shown = "".join(f"1 0 0 1 50 {700 - number % 600} Tm ({text}) Tj\n" for number in range(count))
    return stream(f"BT /F 12 Tf {shown} ET".encode("latin-1"))


def content_bomb(megabytes: int = 400) -> bytes:
    """A page whose content unpacks to `megabytes`: filters applied twice make it tiny."""
    once = zlib.compress(b"q Q " * (megabytes * 2**18), 9)
    twice = zlib.compress(once, 9)
    head = f"<</Length {len(twice)}/Filter[/FlateDecode/FlateDecode]>>\nstream\n".encode()
    return page(head + twice + b"\nendstream")


def deep_page_tree(depth: int) -> bytes:
    """One page below `depth` levels of nodes."""
    nodes = [f"<</Type/Pages/Kids[{number + 3} 0 R]/Count 1/Parent {number + 1} 0 R>>" for number in range(depth)]
    last = depth + 2
    leaf = f"<</Type/Page/Parent {last - 1} 0 R/MediaBox[0 0 600 800]/Contents {last + 1} 0 R"
    return pdf(
        [
            "<</Type/Catalog/Pages 2 0 R>>",
            *nodes,
            f"{leaf}/Resources<</Font<</F {last + 2} 0 R>>>>>>",
            words(),
            FONT,
        ]
    )


def page_tree_of_itself() -> bytes:
    return pdf(["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[2 0 R 2 0 R]/Count 1000000000/Parent 2 0 R>>"])


def form_of_itself(branches: int = 10, depth: int = 12) -> bytes:
    """Forms that show the next one ten times each: 10^12 words."""
    forms = [
        stream(
            b"/X Do " * branches, f"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X {n + 7} 0 R>>>>"
        )
        for n in range(depth)
    ]
    last = stream(b"BT /F 1 Tf (word) Tj ET", "/Type/XObject/Subtype/Form/BBox[0 0 9 9]")
    objects: list[str | bytes] = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>"
        "/XObject<</X 6 0 R>>>>>>",
        stream(b"/X Do"),
        FONT,
    ]
    return pdf([*objects, *forms, last])


def object_stream(count: int = 200_000) -> bytes:
    """An object stream of many objects that unpacks to a thousand times its size."""
    head = " ".join(f"{number + 10} {number * 2}" for number in range(count)).encode()
    body = b"1 " * count
    return pdf(
        [
            "<</Type/Catalog/Pages 2 0 R>>",
            "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
            words(),
            FONT,
            stream(head + b" " + body, f"/Type/ObjStm/N {count}/First {len(head) + 1}"),
        ]
    )


def annotations(count: int) -> bytes:
    notes = "<</Type/Annot/Subtype/Text/Rect[0 0 9 9]/Contents(note)>>" * count
    return pdf(
        [
            "<</Type/Catalog/Pages 2 0 R>>",
            "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Annots[{notes}]"
            "/Resources<</Font<</F 5 0 R>>>>>>",
            words(),
            FONT,
        ]
    )
