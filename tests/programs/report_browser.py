#!/usr/bin/python3
"""Pages for a browser to measure, and a judgement of what it measured.

    report_browser.py make FOLDER [PAGE]   pages in FOLDER, or a copy of PAGE;
                                           and wrapper.html, which shows them
                                           on a desktop and on a phone
    report_browser.py judge DOM            of wrapper.html, as dumped

Headless Chromium has no window as narrow as a phone, so the pages are shown in
frames.  Scripts stand in copies only: a page has none.
"""

import html
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "unit"))

import trial_samples  # noqa: E402
import unit  # noqa: E402, F401: results/ on the path
from trials.record import store  # noqa: E402
from trials.report import page  # noqa: E402
from trials.report.study import Study  # noqa: E402

DESKTOP_PX, PHONE_PX = 1280, 390
LEAST_TEXT_PX = 9
SWEEP = "sort.threads  default | 1 2 3 4\nsort.splitters  0 | 64 128 256\n"

# Runs in the copy of a page: what is wider than it, or sticks out of the rule
# above its section, and of each text of a picture that is shown its size,
# whether it is cut off, and what it covers.
MEASURE = """
<script>
addEventListener("load", () => {
  const found = {name: NAME, width: innerWidth,
    scroll: document.scrollingElement.scrollWidth,
    pictures: [], small: [], cut: [], covered: [], beside: [],
    ran: window.ran || 0};
  const rule = document.querySelector("h2").getBoundingClientRect();
  for (const box of document.querySelectorAll(".scroll, figure, pre"))
    if (box.getBoundingClientRect().right > rule.right + 1)
      found.beside.push(box.textContent.trim().slice(0, 40));
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    if (!frame.width) continue;
    found.pictures.push(svg.getAttribute("aria-labelledby").split(" ")[0]
      .replace(/-[0-9]+-title$/, ""));
    const scale = frame.width / svg.viewBox.baseVal.width;
    const texts = [...svg.querySelectorAll("text")].map(
      t => ({t, box: t.getBoundingClientRect(), words: t.textContent}));
    for (const a of texts) {
      const size = parseFloat(getComputedStyle(a.t).fontSize) * scale;
      if (size < LEAST) found.small.push([a.words, size]);
      if (a.box.left < frame.left - 1 || a.box.right > frame.right + 1 ||
          a.box.top < frame.top - 2 || a.box.bottom > frame.bottom + 2)
        found.cut.push(a.words);
      for (const b of texts) {
        const across = Math.min(a.box.right, b.box.right) -
          Math.max(a.box.left, b.box.left);
        const down = Math.min(a.box.bottom, b.box.bottom) -
          Math.max(a.box.top, b.box.top);
        if (texts.indexOf(a) < texts.indexOf(b) && across > 1 && down > 4)
          found.covered.push([a.words, b.words]);
      }
    }
  }
  parent.postMessage(JSON.stringify(found), "*");
});
</script>
"""

WRAPPER = """<!DOCTYPE html>
<meta charset="utf-8">
<body style="margin: 0"><script>
addEventListener("message", event => {
  const line = document.createElement("pre");
  line.textContent = event.data;
  document.body.append(line);
});
</script>
"""


def far_out(_scenario, _name, block, rng):
    """Two peaks, and now and then one far away; some fail."""
    if block % 19 == 7:
        return None
    if block % 17 == 3:
        return 24e6 * rng.uniform(5, 30)
    return 24e6 * rng.gammavariate(2, 0.01) + rng.choice((24e6, 27e6))


def hostile(run):
    """Names that would be markup and scripts if they were let."""
    for configuration in run.design["configurations"]:
        configuration["name"] += "<script>window.ran = 1</script>"
    for trial in run.trials:
        trial["configuration"] += "<script>window.ran = 1</script>"
        trial["message"] = "<img src=x onerror='window.ran = 1'>"


def peaks(scenario, _name, _block, rng):
    base_ns = {"pagecache": 23.7e6, "cache": 41e6, "platter": 57e6}[scenario]
    return base_ns * (1 + rng.gammavariate(2, 0.01))


def noisy(trial):
    """From little to much, with one that is above a limit."""
    trial["noise"] = trial_samples.noise_look(
        90 if trial["trial"] == 70 else 0.02 + trial["trial"] % 17 / 20,
        limit=5, over=trial["trial"] == 70, waited_ns=10**9)


def make_runs(folder):
    """{name: run}: what a report has to cope with."""
    everything = {
        "three": {"scenarios": ("pagecache", "cache", "platter"),
                  "trials": 60, "times": peaks, "alter": noisy},
        "sweep": {"sweep_text": SWEEP, "trials": 8, "times": peaks},
        "nodes": {"ranks": 16, "trials": 7},
        "outliers": {"trials": 120, "times": far_out, "alter": lambda trial:
                     trial.update(scenario_met=None, noise=(
                         trial_samples.noise_look(trial["trial"] / 2)))},
        "single": {"trials": 1},
    }
    runs = {}
    for name, options in everything.items():
        trial_samples.make_record(str(folder / name), **options)
        runs[name] = store.read(str(folder / name))
    hostile(runs["sweep"])
    return runs


def make(folder, given):
    pages = {}
    if given:
        pages["given"] = Path(given).read_text("utf-8")
    else:
        for name, run in make_runs(folder).items():
            pages[name] = page.render(Study(run))
            (folder / f"{name}.html").write_text(pages[name], "utf-8")
    frames = []
    for name, text in pages.items():
        for width in (DESKTOP_PX, PHONE_PX):
            script = MEASURE.replace("NAME", json.dumps(name)).replace(
                "LEAST", str(LEAST_TEXT_PX))
            copy = folder / f"{name}-{width}.html"
            copy.write_text(text.replace("</body>", script + "</body>"),
                            "utf-8")
            frames.append(f'<iframe src="{copy.name}" style="border: 0; '
                          f'width: {width}px; height: 5000px"></iframe>')
    (folder / "wrapper.html").write_text(WRAPPER + "\n".join(frames))
    for name, text in pages.items():
        if len(text.encode()) > 2_000_000:
            sys.exit(f"{name}: {len(text.encode())} bytes")


def complaints(found):
    """What is wrong with a page at a width."""
    if found["scroll"] > found["width"]:
        yield f"{found['scroll']} pixels wide"
    if found["ran"]:
        yield "text of the record was run as a script"
    if len(found["pictures"]) < 3:
        yield f"only {found['pictures']} are shown"
    if len(set(found["pictures"])) < len(found["pictures"]):
        yield f"one shown twice: {found['pictures']}"
    for kind in ("small", "cut", "covered", "beside"):
        for text in found[kind]:
            yield f"{kind}: {text}"


def judge(dom):
    """A line for each complaint; the exit status."""
    text = Path(dom).read_text("utf-8")
    measured = [json.loads(html.unescape(line)) for line
                in re.findall(r"<pre>(.*?)</pre>", text, re.DOTALL)]
    wrong = [f"{found['name']}, {found['width']} px: {complaint}"
             for found in measured for complaint in complaints(found)]
    frames = text.count("<iframe")
    if len(measured) != frames or not frames:
        wrong.append(f"{len(measured)} of {frames} pages were measured")
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


def main():
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), *sys.argv[3:] or [None])
    else:
        sys.exit(judge(sys.argv[2]))


if __name__ == "__main__":
    main()
