"""XML as a tree of elements with lines. Declarations of entities are refused, and nothing is fetched."""

from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from leeward.errors import InputError

_DEEPEST = 100
"""Greatest depth of elements."""


@dataclass
class Element:
    """An element: name without its namespace, attributes, children, text and line."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list["Element"] = field(default_factory=list)
    text: str = ""

    def below(self, tag: str) -> list["Element"]:
        """Children of a name."""
        return [child for child in self.children if child.tag == tag]

    def first_text(self, tag: str) -> str:
        """Text of the first child of a name; empty without one."""
        return next((child.text.strip() for child in self.below(tag)), "")


def parse(file: str, text: str) -> Element:
    """The root element of a text.

    Raises:
        InputError: The text is not well-formed XML, declares entities, or is nested deeper than 100 elements.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    root = Element("", {}, 0)
    path = [root]

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(path) > _DEEPEST:
            raise InputError(file, parser.CurrentLineNumber, None, None, "nested too deeply")
        local = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        element = Element(name.rpartition(" ")[2], local, parser.CurrentLineNumber)
        path[-1].children.append(element)
        path.append(element)

    def end(_: str) -> None:
        path.pop()

    def characters(data: str) -> None:
        path[-1].text += data

    def refuse(*_: Any) -> None:
        message = "an entity is declared or used; expected a file without own entities"
        raise InputError(file, parser.CurrentLineNumber, None, None, message)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    parser.buffer_text = True
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        message = f"not valid XML: {expat.ErrorString(error.code)}"
        raise InputError(file, error.lineno, None, None, message) from None
    return root.children[0]
