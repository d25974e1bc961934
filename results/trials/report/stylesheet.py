"""How the page looks.

Pictures come in two widths, of which one is shown.  On a wide page the words
of a table that is too wide are broken into lines; what is still too wide
scrolls in its box, the page never sideways.  Pictures stay on white paper in
the dark, since their colours were chosen for it.
"""

from trials.drawing import style, svg

# The wide pictures' text would be too small on a page below this width.
_NARROW_BELOW_PX = 840

TEXT = f"""
:root {{ color-scheme: light dark; --ink: {style.INK}; --paper: #fff;
  --muted: {style.MUTED}; --line: {style.FAINT}; --tint: #f6f6f4;
  --link: {style.BLUE}; --bad: {style.RED}; --doubtful: #8a5a00;
  --good: {style.GREEN}; --slower: {style.VERMILION}; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e6e6e6; --paper: #16181a; --muted: #a5a5a5;
    --line: #3a3d40; --tint: #1f2224; --link: #6db9ee; --bad: #ff7b85;
    --doubtful: #e6b450; --good: #5fc9a5;
    --slower: #ff9a5c; }}
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; padding: 24px 16px 48px; max-width: 928px;
  background: var(--paper); color: var(--ink);
  font: 16px/1.5 {svg.FONTS}; overflow-wrap: break-word; }}
h1 {{ font-size: 26px; line-height: 1.2; margin: 0 0 4px; }}
h2 {{ font-size: 19px; line-height: 1.3; margin: 40px 0 8px;
  padding-top: 10px; border-top: 1px solid var(--line); }}
p {{ margin: 8px 0; max-width: 72ch; }}
ul {{ margin: 8px 0; padding-left: 22px; max-width: 72ch; }}
a {{ color: var(--link); }}
.muted {{ color: var(--muted); font-size: 14px; }}
.result {{ font-size: 17px; }}
.doubt {{ border-left: 3px solid var(--doubtful); padding-left: 12px; }}
figure {{ margin: 16px 0 24px; }}
figure > div {{ background: #fff; padding: 6px 0 0; }}
figure svg {{ display: block; width: 100%; height: auto; }}
figure .narrow {{ display: none; }}
figcaption {{ font-size: 14px; color: var(--muted); margin-top: 2px;
  max-width: 80ch; }}
figcaption b {{ color: var(--ink); }}
.scroll {{ overflow-x: auto; margin: 12px 0 20px; }}
table {{ border-collapse: collapse; width: max-content; font-size: 13px;
  line-height: 1.35;
  font-variant-numeric: tabular-nums; }}
caption {{ text-align: left; color: var(--muted); padding: 0 0 6px; }}
th, td {{ max-width: 60ch; padding: 4px 11px 4px 0; text-align: left;
  vertical-align: top;
  border-bottom: 1px solid var(--line); }}
thead th {{ font-weight: 600; vertical-align: bottom;
  border-bottom: 1px solid var(--muted); }}
tbody th {{ font-weight: 500; }}
.figures {{ text-align: right; white-space: nowrap; }}
.bad {{ color: var(--bad); font-weight: 600; }}
.doubtful {{ color: var(--doubtful); font-weight: 600; }}
.slower {{ color: var(--slower); }}
.faster {{ color: var(--link); }}
.good {{ color: var(--good); }}
pre {{ background: var(--tint); padding: 10px 12px; overflow-x: auto;
  font: 13px/1.45 ui-monospace, "SF Mono", Menlo, Consolas,
  "DejaVu Sans Mono", monospace; }}
details {{ margin: 10px 0; }}
summary {{ cursor: pointer; }}
.environment table {{ width: 100%; }}
.environment th, .environment td {{ overflow-wrap: anywhere; }}
.environment th {{ min-width: 16ch; }}
@media screen and (min-width: {_NARROW_BELOW_PX + 1}px) {{
  table {{ max-width: 100%; }}
}}
@media screen and (max-width: {_NARROW_BELOW_PX}px) {{
  body {{ padding-top: 16px; }}
  figure .wide {{ display: none; }}
  figure .narrow {{ display: block; max-width: 480px; }}
}}
@media print {{
  :root {{ --ink: #000; --paper: #fff; --muted: #444; --line: #bbb;
    --tint: #fff; --link: #000; }}
  body {{ max-width: none; padding: 0; font-size: 10.5pt; }}
  summary {{ display: none; }}
  .scroll {{ overflow: visible; }}
  table {{ font-size: 8.5pt; }}
  figure, tr {{ break-inside: avoid; }}
  h2 {{ break-after: avoid; }}
}}
"""
