"""A bar chart as SVG: groups of horizontal bars, each group with a scale of its own."""

import html

WIDTH, LABEL, BAR, GAP, HEAD = 860, 210, 18, 4, 30
COLOURS = ["#1f6f8b", "#c8553d", "#e0a458", "#9aa5b1", "#5b7553", "#7d5ba6"]


def bars(title: str, groups: list[tuple[str, str, list[tuple[str, float | None]]]]) -> str:
    """`groups`: (name, unit, [(bar's name, value)]). A missing value is said, not drawn."""
    colours: dict[str, str] = {}
    y = 36
    body = []
    for name, unit, values in groups:
        body.append(f'<text x="10" y="{y + 16}" class="group">{html.escape(f"{name} ({unit})")}</text>')
        y += HEAD
        longest = max((v for _, v in values if v), default=1)
        for label, value in values:
            colour = colours.setdefault(label, COLOURS[len(colours) % len(COLOURS)])
            length = (WIDTH - LABEL - 110) * (value or 0) / longest
            text = "not measured" if value is None else f"{value:,.0f}"
            body.append(f'<text x="{LABEL - 8}" y="{y + 13}" class="label">{html.escape(label)}</text>'
                        f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>'
                        f'<text x="{LABEL + length + 6:.1f}" y="{y + 13}">{text}</text>')
            y += BAR + GAP
        y += GAP
    style = ("text{font:12px sans-serif;fill:#222}.group{font-weight:bold}"
             ".label{text-anchor:end}.title{font-size:15px;font-weight:bold}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 10}">'
            f'<style>{style}</style><rect width="100%" height="100%" fill="white"/>'
            f'<text x="10" y="24" class="title">{html.escape(title)}</text>{"".join(body)}</svg>\n')
