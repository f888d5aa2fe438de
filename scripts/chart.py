# SPDX-License-Identifier: GPL-2.0
"""Line charts as SVG, for scripts/bench-report and scripts/pictures."""
import math

COLOURS = ['#1b6ca8', '#c0392b', '#27823b', '#8e44ad', '#d68910', '#148f8f', '#7f8c8d', '#2c3e50',
           '#a04000', '#5b2c6f']
BOLD = ('stack map', 'event, stack')


def chart(out, left, title, xlabel, xs, series, ylabel):
    """Adds one chart, 430 wide and 340 high plus 16 a series, to out; series: {name: {x: y}}."""
    x0, y0, width, height = left + 80, 40, 330, 260
    top = max(y for s in series.values() for y in s.values())
    step = 10 ** math.floor(math.log10(top))
    step = next(s for s in (step / 5, step / 2, step, step * 2) if top / s <= 8)
    limit = math.ceil(top / step) * step
    first, last = min(xs), max(xs)

    def px(x):
        return x0 + width * (x - first) / max(last - first, 1)

    def py(y):
        return y0 + height * (1 - y / limit)

    out.append(f'<text x="{x0 + width / 2}" y="22" class="t">{title}</text>')
    value = 0
    while value <= limit + step / 2:
        label = f'{value:,.0f}' if limit >= 10 else f'{value:g}'
        out.append(f'<path d="M{x0} {py(value):.1f}h{width}" class="g"/>'
                   f'<text x="{x0 - 6}" y="{py(value) + 4:.1f}" class="y">{label}</text>')
        value += step
    few = xs if len(xs) <= 16 else [x for x in xs if x % 5 == 0]
    for x in few:
        out.append(f'<text x="{px(x):.1f}" y="{y0 + height + 16}" class="x">{x}</text>')
    out.append(f'<text x="{x0 + width / 2}" y="{y0 + height + 34}" class="x">{xlabel}</text>')
    out.append(f'<text transform="translate({left + 14} {y0 + height / 2}) rotate(-90)" class="x">{ylabel}</text>')
    for i, (name, points) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        wide = 3 if name.startswith(BOLD) else 1.5
        path = ' '.join(f'{px(x):.1f},{py(y):.1f}' for x, y in sorted(points.items()))
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{wide}"/>')
        out += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3" fill="{colour}"/>' for x, y in points.items()]
        y = y0 + height + 56 + 16 * i
        out.append(f'<path d="M{x0} {y - 4}h24" stroke="{colour}" stroke-width="{wide}"/>'
                   f'<text x="{x0 + 30}" y="{y}">{name}</text>')


def picture(out, width, height):
    """The SVG file of these charts."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
            'font-size="12"><style>.t{font-size:14px;font-weight:bold;text-anchor:middle}.x{text-anchor:middle}'
            '.y{text-anchor:end}.g{stroke:#ddd}</style><rect width="100%" height="100%" fill="white"/>\n'
            + '\n'.join(out) + '\n</svg>\n')
