"""Uses the page in Debian's Chromium: page.py SCENARIO URL [ARGUMENT…]. See page.rs.

Every visit checks that the console is empty, that no request goes to another host, that the policy is not violated, and that
axe-core finds no problem. Each scenario prints how much it has checked.
"""

import json
import os
import pathlib
import sys
import tempfile
import time
import uuid
from urllib.parse import urlsplit

import axe_playwright_python
from playwright.sync_api import expect, sync_playwright

from page_pastes import PASTES, ULIDS

AXE = (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
# The folder of the screenshots in the documents. They are taken again if UPDATE_DOCS is set.
IMAGES = pathlib.Path(__file__).parents[2] / "docs/images" if os.environ.get("UPDATE_DOCS") else None
SNOWFLAKE = "1573542478315782144"
PAYMENT = "1I9ZC1000"
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective + " " + event.blockedURI));
"""
# The beginning of the console message about a refused request, which no page can prevent.
REFUSED = "Failed to load resource: the server responded with a status of "
# Chromium reports these errors when the network interfaces change, as for containers of other tests, or its certificate settings.
CHANGES = ("net::ERR_NETWORK_CHANGED", "net::ERR_CERT_VERIFIER_CHANGED")

expect.set_options(timeout=60_000)


class Visit:
    """A page in the browser. Records its console messages and its requests to other hosts, and checks them at the end."""

    looked_at = {"views": 0, "requests": 0, "axe rules": 0, "images": 0}
    # True if the last visit had errors, and all of them are in CHANGES.
    was_interrupted = False

    def __init__(self, browser, url, refusals=(), **context):
        context = {"viewport": {"width": 1100, "height": 900}, "timezone_id": "Europe/Berlin", **context}
        self.url, self.refusals, self.messages, self.foreign = url, refusals, [], []
        self.context = browser.new_context(ignore_https_errors=True, locale="en-GB", **context)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.context.add_init_script(WATCH)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", self.note)

    def note(self, request):
        Visit.looked_at["requests"] += 1
        asked, own = urlsplit(request.url), urlsplit(self.url)
        is_own = (asked.scheme, asked.netloc) == (own.scheme, own.netloc) and asked.path.startswith(own.path)
        if not is_own and asked.scheme not in ("blob", "data"):
            self.foreign.append(request.url)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        errors = self.wrong() + [str(error)] * ("net::" in str(error))
        Visit.was_interrupted = bool(errors) and all(any(change in text for change in CHANGES) for text in errors)
        if kind is None:
            self.check()
        else:
            print(f"failed at {self.page.url}, console {self.messages}, problems {self.page.locator('.problem').all_inner_texts()}")
        self.context.close()

    def wrong(self):
        """Returns the console messages that no refusal explains."""
        allowed = [REFUSED + str(status) for status in self.refusals]
        return [text for text in self.messages if not any(text.startswith(start) for start in allowed)]

    def check(self):
        wrong = self.wrong()
        assert not wrong, wrong
        assert not self.foreign, self.foreign
        assert self.page.evaluate("window.violations") == []

    def open(self, hash_=""):
        self.page.goto(self.url + hash_)
        if "#" in self.page.url:
            self.page.reload()
        return self.page

    def judge(self, name):
        """Waits for all responses, and checks the current view with axe-core."""
        expect(self.page.locator("[aria-busy]")).to_have_count(0)
        self.judge_now(name)

    def judge_now(self, name):
        """Checks the current view with axe-core, even while a response is pending."""
        self.page.evaluate(AXE)
        told = self.page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then(({violations, passes}) => ({violations, passes: passes.length}))")
        found = [(one["id"], [node["html"][:200] for node in one["nodes"]], one["nodes"][0]["failureSummary"]) for one in told["violations"]]
        assert not found, f"{name}: {json.dumps(found, indent=1)}"
        assert told["passes"] > 10, told["passes"]
        Visit.looked_at["views"] += 1
        Visit.looked_at["axe rules"] += told["passes"]

    def fits(self, name):
        wide = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], f"{name}: {wide[0]} px in a window of {wide[1]}"

    def picture(self, name):
        if IMAGES:
            IMAGES.mkdir(exist_ok=True)
            self.page.evaluate("document.activeElement.blur()")
            size = self.page.viewport_size
            self.page.screenshot(path=IMAGES / f"page-{name}.png", animations="disabled", clip={"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 740)})
            Visit.looked_at["images"] += 1

    def paste(self, text):
        self.page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
        field = self.page.locator("#text")
        if field.is_visible():
            field.focus()
            self.page.keyboard.press("Control+A")
            self.page.keyboard.press("Control+V")

    def copied(self):
        return self.page.evaluate("navigator.clipboard.readText()")

    def saved(self, button):
        with self.page.expect_download() as download:
            button()
        return pathlib.Path(download.value.path()).read_text()


def heading(page, text):
    return expect(page.locator("main h1, main h2").filter(has_text=text).first).to_be_visible()


def until(page, expression, arg=None):
    """Polls the page until the expression is true. The policy forbids `wait_for_function`, which evaluates text."""
    for _ in range(600):
        if page.evaluate(expression, arg):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{expression} stays false")


def answered(page):
    """Waits until the page shows the card or the table for a text."""
    expect(page.locator("#view h2").first).to_be_visible()
    expect(page.locator("#view section[aria-label=Examples]")).to_have_count(0)
    expect(page.locator("[aria-busy]")).to_have_count(0)


# Each view has a name, the fragment that leads to it, and a heading that it shows.
VIEWS = [
    ("start", "", "What is this id?"),
    ("decode", f"#/{SNOWFLAKE}", "snowflake"),
    ("digits", f"#/{PAYMENT}", "payment"),
    ("near", "#/'1i9zc1000'", "payment"),
    ("none", "#/hello-world-1", "No id of a format"),
    ("line", "#/" + "order%201I9ZC1000%20paid%20by%200190163d-8694-739b-aea5-966c26f8ad90", "2 ids"),
    ("day", "#/2026-11-28", "Ids of this day: choose a format"),
    ("mint", "#mint", "Mint ids"),
    ("formats", "#formats", "Formats"),
    ("format", "#formats/siq", "siq"),
    ("span", "#formats/payment/2026-11-27", "payment"),
    ("all-numbers", "#numbers", "Numbers without gaps"),
    ("numbers", "#numbers/acme-2026", "acme-2026"),
    ("number", "#/INV-acme-2026-00002", "Number 2"),
]


PICTURES = {"start", "decode", "decode-small-dark", "format", "column", "column-small-dark"}


def views(browser, url):
    """Checks every view on a desktop and a phone, in light and dark, with forced colours, and enlarged. Checks a column in print."""
    desk, phone = {"width": 1100, "height": 900}, {"width": 360, "height": 740}
    guises = [
        ("", {"viewport": desk}),
        ("-dark", {"viewport": desk, "color_scheme": "dark"}),
        ("-phone", {"viewport": phone, "has_touch": True, "is_mobile": True}),
        ("-forced", {"viewport": desk, "forced_colors": "active"}),
        # A window of 1100 pixels at a zoom of 200 %.
        ("-large", {"viewport": {"width": 550, "height": 450}, "device_scale_factor": 2}),
        ("-small-dark", {"viewport": phone, "color_scheme": "dark"}),
    ]
    for guise, context in guises:
        with Visit(browser, url, **context) as visit:
            for name, hash_, says in VIEWS:
                page = visit.open(hash_)
                heading(page, says)
                visit.judge(name + guise)
                visit.fits(name + guise)
                if name + guise in PICTURES:
                    visit.picture(name + guise)
            page = visit.open()
            visit.paste("\n".join([*ULIDS, "n/a"]))
            heading(page, "20 ids")
            visit.judge("column" + guise)
            visit.fits("column" + guise)
            if "column" + guise in PICTURES:
                visit.picture("column" + guise)
            if guise == "":
                page.emulate_media(media="print")
                expect(page.locator("header.top")).to_be_hidden()
                expect(page.locator("table.many")).to_be_visible()


def by_mouse(browser, url):
    """Uses each view with the mouse, and uses back, forward and reload."""
    with Visit(browser, url) as visit:
        page = visit.open()
        page.locator("#text").fill(SNOWFLAKE)
        page.get_by_role("button", name="Decode").click()
        heading(page, "snowflake")
        assert page.url == f"{url}#/{SNOWFLAKE}", page.url
        drawn = page.locator(".drawing").first
        assert drawn.get_attribute("aria-label") == "To scale: time, 42 bits; worker, 5 bits; shard, 5 bits; sequence, 12 bits"
        widths = [box["width"] for box in (part.bounding_box() for part in drawn.locator(".part").all())]
        for got, bits in zip(widths, [42, 5, 5, 12]):
            assert abs(got / sum(widths) - bits / 64) < 0.01, (widths, bits)
        # Each bar stands for one bit of the number, and tall bars are ones.
        tall = drawn.locator("rect").evaluate_all("(bars) => bars.map((bar) => (bar.getAttribute('height') === '10' ? '1' : '0')).join('')")
        assert int(tall, 2) == int(SNOWFLAKE), tall
        expect(page.locator(".times")).to_contain_text("2026-11-21 03:36:01.836 UTC")
        expect(page.locator(".times")).to_contain_text("04:36:01")
        expect(page.locator(".times")).to_contain_text("ago")
        expect(page.locator("#status")).to_contain_text("snowflake, of 2026-11-21T03:36:01.836Z")
        for name, text in [("decimal", SNOWFLAKE), ("hex_padded", "15d6588c0b000000")]:
            page.get_by_role("button", name=f"Copy the id as {name}", exact=True).click()
            expect(page.locator("#status")).to_have_text(f"Copied the id as {name}")
            assert visit.copied() == text, visit.copied()
        page.get_by_role("button", name="Show the range").click()
        expect(page.get_by_role("region", name="Ids of this day")).to_contain_text("1573488112435200000")
        page.get_by_text("Why not").click()
        expect(page.locator("details").last).to_contain_text("another length")
        page.get_by_role("button", name="Copy the link to this id").click()
        expect(page.locator("#status")).to_have_text("Copied the link to this id")
        assert visit.copied() == f"{url}#/{SNOWFLAKE}"

        # Open another reading of the id, and go back. Readings that are a thousand times less likely are collapsed.
        expect(page.get_by_role("region", name="Other readings").locator("tbody tr")).to_have_count(1)
        expect(page.get_by_text("mastodon").first).to_be_hidden()
        page.get_by_text("a thousand times less likely").click()
        expect(page.get_by_role("region", name="Unlikely readings")).to_contain_text("mastodon")
        page.get_by_role("region", name="Other readings").get_by_role("link", name="twitter").click()
        heading(page, "twitter")
        page.go_back()
        heading(page, "snowflake")
        page.go_forward()
        heading(page, "twitter")
        page.reload()
        heading(page, "twitter")
        page.get_by_role("link", name="Try all formats").click()
        heading(page, "snowflake")

        # Open a link that another user has shared, in a new tab.
        shared = visit.context.new_page()
        shared.goto(f"{url}#/{PAYMENT}")
        heading(shared, "payment")
        assert shared.locator(".digits").all_inner_texts() == ["1I9ZC1", "0", "00"]
        shared.close()

        # Decode a text that is almost an id.
        page.locator("#text").fill("1i9zc1000")
        page.get_by_role("button", name="Decode").click()
        expect(page.locator(".notice").first).to_contain_text("Not as written")
        expect(page.locator(".notice").first).to_contain_text(PAYMENT)

        # Mint ids with the settings of the form, and decode one of them.
        page.get_by_role("link", name="Mint", exact=True).click()
        page.get_by_label("How many").fill("25")
        page.get_by_label("Written as").select_option("hex_padded")
        expect(page.locator(".command")).to_have_text(f"curl -X POST -H 'Accept: text/plain' '{url}ids/snowflake?count=25&encoding=hex_padded'")
        page.get_by_role("button", name="Mint", exact=True).click()
        heading(page, "25 ids of snowflake")
        expect(page.locator(".card ~ .curl, div:has(> .card) ~ .curl")).to_be_visible()
        page.get_by_role("button", name="Copy command").click()
        expect(page.locator("#status")).to_have_text("Copied command")
        assert visit.copied() == page.locator(".command").inner_text()
        page.get_by_role("button", name="Copy ids").click()
        expect(page.locator("#status")).to_have_text("Copied ids")
        ids = visit.copied().split()
        assert len(set(ids)) == 25 and all(len(id_) == 16 for id_ in ids), ids
        assert visit.saved(lambda: page.get_by_role("button", name="Save as text").click()).split() == ids
        for name, setting, value in [("siq", "Type", "message"), ("typeid", "Type", "order")]:
            page.get_by_label("Format", exact=True).select_option(name)
            control = page.get_by_label(setting, exact=True)
            control.select_option(value) if control.evaluate("(it) => it.tagName") == "SELECT" else control.fill(value)
            page.get_by_role("button", name="Mint", exact=True).click()
            heading(page, f"10 ids of {name}")
        expect(page.locator(".ids li").first).to_contain_text("order_")
        page.locator(".ids a").first.click()
        heading(page, "typeid")

        # Open the list of formats, and one format.
        page.get_by_role("link", name="Formats", exact=True).click()
        heading(page, "Formats")
        expect(page.locator(".format").nth(24)).to_be_visible()
        page.get_by_role("link", name="payment", exact=True).click()
        heading(page, "payment")
        for text in ["1\u202f296 for each worker number", "2092-12-23", "Strictly increasing", "When it was minted", "11LPC0007", "CREATE TABLE example (id bigint PRIMARY KEY);", "The first id of each tick"]:
            expect(page.locator("main")).to_contain_text(text)
        page.get_by_label("Database").select_option("sqlite")
        expect(page.locator(".advice").first).to_contain_text("INTEGER")
        page.get_by_label("Database").select_option("postgresql")
        expect(page.locator(".advice").first).to_contain_text("SELECT finds example ids of 2026-01-01.")
        page.get_by_label("From (UTC)").fill("2026-11-27T00:00:00")
        page.get_by_label("to before (UTC)").fill("2026-11-28T00:00:00")
        page.get_by_role("button", name="Show the range").click()
        span = page.get_by_role("region", name="Ids of this span")
        expect(span).to_contain_text("1IKTC0000")
        advice = page.locator(".advice")
        expect(advice.first).to_contain_text("SELECT finds ids from 2026-11-27T00:00:00Z to before 2026-11-28T00:00:00Z, as chosen above.")
        expect(advice.first.locator("pre")).to_contain_text("BETWEEN 4276974182400 AND 4281005260799")
        advice.last.get_by_role("button", name="Copy").click()
        assert "BETWEEN '1IKTC0000' AND '1IMNZZZZZ'" in visit.copied(), visit.copied()
        for name in ["Yesterday", "Today"]:
            page.get_by_role("button", name=name).click()
            days = [page.get_by_label(label).input_value()[:10] for label in ["From (UTC)", "to before (UTC)"]]
            expect(advice.first).to_contain_text(f"SELECT finds ids from {days[0]}T00:00:00Z to before {days[1]}T00:00:00Z")
        page.get_by_role("link", name="Mint some").click()
        expect(page.get_by_label("Format", exact=True)).to_have_value("payment")

        # Decode a day, and open the ids of that day.
        page.get_by_role("link", name="Decode", exact=True).click()
        page.locator("#text").fill("2026-01-01T10:00Z")
        page.get_by_role("button", name="Decode").click()
        heading(page, "Ids of this day: choose a format")
        visit.judge("day")
        expect(page.get_by_role("link", name="uuid4")).to_have_count(0)
        page.get_by_role("link", name="siq", exact=True).click()
        heading(page, "siq")
        expect(span).to_be_visible()
        expect(page.get_by_label("From (UTC)")).to_have_value("2026-01-01T00:00")
        # For the day of the example, the range must give the same SQL as the example.
        bounds = lambda: [text[text.index("BETWEEN"):] for text in page.locator(".advice pre").all_inner_texts()]
        chosen = bounds()
        page.get_by_role("link", name="All formats").click()
        page.get_by_role("link", name="siq", exact=True).click()
        expect(page.locator(".advice").first).to_contain_text("example ids of 2026-01-01")
        assert chosen == bounds(), chosen
    with Visit(browser, url, timezone_id="UTC") as visit:
        page = visit.open(f"#/{SNOWFLAKE}")
        expect(page.locator(".times")).to_contain_text("ago")
        expect(page.locator(".times")).not_to_contain_text("here")


def rows(browser, url):
    """Checks the order and the links of a column's rows, and how the words of a long log are divided into requests."""
    with Visit(browser, url) as visit:
        page = visit.open()
        visit.paste(f"hello\n{SNOWFLAKE}\n{PAYMENT}")
        heading(page, "2 ids")
        lines = page.locator("table.many tbody tr td:first-child")
        for order, expected in [("ascending", ["3", "2", "1"]), ("descending", ["2", "3", "1"])]:
            page.get_by_role("button", name="Time (UTC)").click()
            expect(page.locator(f"th[aria-sort={order}]")).to_be_visible()
            assert lines.all_inner_texts() == expected, (order, lines.all_inner_texts())

        page = visit.open()
        visit.paste(f"{SNOWFLAKE}\n{int(SNOWFLAKE) + 1}")
        page.get_by_label("Read all as").select_option("twitter")
        expect(page.locator(".verdict")).to_contain_text("as you chose")
        page.locator("table.many a").first.click()
        heading(page, "twitter")

        asked = []
        page = visit.open()
        page.on("request", lambda request: "detail=brief" in request.url and asked.append(len(request.post_data_json)))
        visit.paste("\n".join(f"at trace={uuid.uuid4()}" for _ in range(10_001)))
        heading(page, "10\u202f001 ids")
        assert asked == [20_000, 2], asked


def spans(browser, url):
    """Checks that the ids of a time span are those of the latest request, even if an earlier response arrives later."""
    with Visit(browser, url) as visit:
        page = visit.open("#formats/payment")
        heading(page, "payment")
        held = []
        page.route("**/range?*", lambda route: route.continue_() if held else held.append(route))
        shown = page.get_by_role("region", name="Ids of this span")
        with page.expect_request("**/range?*"):
            page.get_by_role("button", name="Yesterday").click()
        page.get_by_role("button", name="Today").click()
        expect(shown).to_be_visible()
        least, advice = shown.inner_text(), page.locator(".advice").first.inner_text()
        with page.expect_response("**/range?*") as late:
            held[0].continue_()
        late.value.finished()
        page.evaluate("fetch('formats').then((answer) => answer.text())")
        assert (shown.inner_text(), page.locator(".advice").first.inner_text()) == (least, advice), "yesterday replaces today"
        days = [page.get_by_label(label).input_value()[:10] for label in ["From (UTC)", "to before (UTC)"]]
        expect(page.locator(".ranges")).to_contain_text(f"From {days[0]}T00:00:00Z to before {days[1]}T00:00:00Z.")

        # Every format that a day offers has a range of ids.
        page = visit.open("#/2026-01-01")
        heading(page, "Ids of this day")
        names = page.locator("#view a.button").all_inner_texts()
        assert len(names) > 15 and "uuid6" in names and "uuid1" not in names, names
        asked = "(names) => Promise.all(names.map(async (name) => (await fetch(`formats/${name}/range?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z`)).status))"
        assert page.evaluate(asked, names) == [200] * len(names), names


def numbers(browser, url):
    """Checks the views of series and numbers. page.rs has created the series, with two void numbers."""
    with Visit(browser, url) as visit:
        page = visit.open()
        page.get_by_role("link", name="Numbers", exact=True).click()
        heading(page, "Numbers without gaps")
        expect(page.locator("tbody tr")).to_have_count(1000)
        # Two quick clicks send only one request.
        with page.expect_response("**/numbers?after=*"):
            page.get_by_role("button", name="More series").evaluate("(button) => (button.click(), button.click())")
        expect(page.locator("tbody tr")).to_have_count(1024)
        expect(page.get_by_role("button", name="More series")).to_be_hidden()
        expect(page.locator("tbody tr").nth(1000).get_by_role("link").first).to_be_focused()
        expect(page.locator("#status")).to_have_text("1\u202f024 series.")
        # The last three series: one of blocks, a closed one, and one that was closed before its first number.
        expect(page.locator("main")).not_to_contain_text("given", ignore_case=True)
        ends = [row.locator("th, td").all_inner_texts() for row in page.locator("tbody tr").all()[-3:]]
        assert [end[:3] for end in ends] == [["table-rows", "1\u202f000", "1"], ["till-1", "1", "1"], ["till-2", "", ""]], ends
        assert [end[4][:2] for end in ends] == ["", "20", "20"], ends
        for series, says in [("table-rows", "Reserved (UTC)"), ("till-1", "Closed 20"), ("till-2", "No number from 1 on was given.")]:
            page.get_by_role("link", name=series).click()
            heading(page, series)
            expect(page.locator("main")).to_contain_text(says)
            expect(page.get_by_text("Closed 20")).to_have_count(int("till" in series))
            page.go_back()
        row = page.locator("tbody tr").first
        expect(row).to_contain_text("acme-2026")
        expect(row).to_contain_text("253")
        row.get_by_role("link", name="acme-2026").click()
        heading(page, "acme-2026")
        rows = page.locator("tbody tr")
        expect(rows).to_have_count(100)
        assert rows.nth(1).locator("th, td").all_inner_texts()[:2] == ["2", "INV-acme-2026-00002"]
        expect(rows.nth(1)).to_contain_text("void: the order was cancelled (20")
        for first, count in [(101, 100), (201, 53)]:
            page.get_by_role("link", name="Later numbers").click()
            expect(rows.first.locator("th")).to_have_text(str(first))
            expect(rows).to_have_count(count)
            if first == 101:
                expect(rows.nth(2)).to_contain_text("void: <b>lost\\u202e</b>")
                expect(page.locator("main b")).to_have_count(0)
        expect(page.get_by_role("link", name="Later numbers")).to_have_count(0)
        page.get_by_label("From number").fill("252")
        page.get_by_role("button", name="Show").click()
        expect(rows).to_have_count(2)
        assert page.url.endswith("#numbers/acme-2026/252"), page.url
        page.get_by_label("From number").fill("4000")
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text("No number from 4\u202f000 on was given.")
        page.go_back()
        expect(rows).to_have_count(2)
        visit.paste("")
        page = visit.open()
        visit.paste("INV-acme-2026-00002")
        heading(page, "Number 2 of acme-2026")
        expect(page.locator(".card")).to_contain_text("numbers.invoice")
        page.get_by_role("link", name="acme-2026", exact=True).click()
        expect(rows.first).to_contain_text("void: the order was cancelled")
        page.get_by_role("link", name="All series").click()
        heading(page, "Numbers without gaps")
    with Visit(browser, url, refusals=[404]) as visit:
        page = visit.open("#numbers/none")
        expect(page.locator(".problem")).to_contain_text("there is no series none")


def no_numbers(browser, url):
    """Checks that a service without series shows the command that begins one."""
    with Visit(browser, url) as visit:
        page = visit.open("#numbers")
        expect(page.locator("main")).to_contain_text("No series has begun here")
        expect(page.locator(".command")).to_have_text(f"curl -X POST -H 'Idempotency-Key: order-1' '{url}numbers/invoice-2026'")
        visit.judge("no numbers")


def tab_to(page, what, by="Tab"):
    """Presses Tab until this element has the focus. Asserts that the focus is visible."""
    for _ in range(200):
        page.keyboard.press(by)
        if what.evaluate("(it) => it === document.activeElement"):
            seen = what.evaluate("(it) => getComputedStyle(it).outlineStyle")
            assert seen != "none", "one sees where the focus is"
            return
    raise AssertionError(f"{what} cannot be reached by {by}")


def by_keyboard(browser, url):
    """Uses the views with the keyboard alone."""
    with Visit(browser, url) as visit:
        page = visit.open()
        expect(page.locator("#text")).to_be_focused()
        page.keyboard.type(PAYMENT)
        page.keyboard.press("Enter")
        heading(page, "payment")
        tab_to(page, page.get_by_role("button", name="Copy the id as decimal"))
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text("Copied the id as decimal")
        assert visit.copied() == "4253392420416"
        tab_to(page, page.get_by_role("button", name="Show the range"))
        page.keyboard.press("Space")
        expect(page.get_by_role("region", name="Ids of this day")).to_be_visible()
        page = visit.open(f"#/{PAYMENT}")
        heading(page, "payment")
        tab_to(page, page.locator("summary"))
        page.keyboard.press("Enter")
        expect(page.locator("details")).to_have_attribute("open", "")

        # Use the skip link, which jumps over the header of the page.
        page = visit.open("#mint")
        heading(page, "Mint ids")
        tab_to(page, page.locator("#skip"))
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        choice = page.get_by_label("Format", exact=True)
        tab_to(page, choice)
        for _ in range(30):
            page.keyboard.type("flax")
            if choice.input_value() == "flax":
                break
            # The letters came too slowly. After a second without a letter, the browser begins a new search.
            page.wait_for_timeout(1_100)
        expect(choice).to_have_value("flax")
        tab_to(page, page.get_by_label("How many"))
        page.keyboard.press("Control+A")
        page.keyboard.type("3")
        page.keyboard.press("Enter")
        heading(page, "3 ids of flax")
        expect(page.get_by_role("button", name="Mint", exact=True)).to_be_focused()
        tab_to(page, page.locator(".ids a").first)
        page.keyboard.press("Enter")
        heading(page, "flax")

        tab_to(page, page.get_by_role("link", name="Formats", exact=True), by="Shift+Tab")
        page.keyboard.press("Enter")
        heading(page, "Formats")
        tab_to(page, page.get_by_role("link", name="ulid", exact=True))
        page.keyboard.press("Enter")
        heading(page, "ulid")

        # Show the only id in a text as a table.
        page = visit.open()
        visit.paste(f"order={PAYMENT}")
        tab_to(page, page.get_by_role("button", name="Show as a table"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("region", name="The ids")).to_be_focused()

        # Page through a column, sort it, filter it and save it.
        page = visit.open()
        ids = [f"{int(SNOWFLAKE) + at * 4096000}" for at in range(250)]
        visit.paste("\n".join(ids))
        heading(page, "250 ids")
        tab_to(page, page.get_by_role("button", name="Later rows"))
        page.keyboard.press("Enter")
        expect(page.locator(".place")).to_have_text("101 to 200 of 250")
        page.keyboard.press("Enter")
        expect(page.locator(".place")).to_have_text("201 to 250 of 250")
        expect(page.get_by_role("button", name="Earlier rows")).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Later rows")).to_be_focused()
        tab_to(page, page.get_by_role("button", name="Time (UTC)"), by="Shift+Tab")
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        expect(page.locator("th[aria-sort=descending]")).to_have_text("Time (UTC) ▾")
        expect(page.locator("table.many tbody tr").first).to_contain_text(ids[-1])
        tab_to(page, page.locator("#filter"), by="Shift+Tab")
        page.keyboard.type(ids[7])
        expect(page.locator("table.many tbody tr")).to_have_count(1)
        expect(page.locator("#status")).to_have_text("1 row of 250.")
        page.locator("#filter").fill("")
        page.locator("#only").select_option("rows with problems")
        expect(page.locator("#status")).to_have_text("0 rows of 250.")
        page.locator("#only").select_option("all rows")
        page.locator("#filter").fill(ids[7])
        tab_to(page, page.get_by_role("button", name="Save as CSV"))
        saved = visit.saved(lambda: page.keyboard.press("Enter"))
        assert saved.splitlines()[0] == "line,id,format,time,worker,sequence,note" and saved.splitlines()[1].startswith(f"8,{ids[7]},snowflake,"), saved


def columns(browser, url):
    """Checks columns, files, lines of a log, and malicious texts."""
    with Visit(browser, url) as visit:
        page = visit.open()
        count = 10_000
        ids = [str(int(SNOWFLAKE) + at * 4_194_304 * 1_000) for at in range(count)]
        page.evaluate("window.beats = [performance.now()]; setInterval(() => window.beats.push(performance.now()), 20)")
        began = time.monotonic()
        visit.paste("\n".join(ids))
        heading(page, "10\u202f000 ids")
        seconds = time.monotonic() - began
        gaps = page.evaluate("window.beats.slice(1).map((at, index) => at - window.beats[index])")
        # Timers must have run while the page parsed the response.
        assert len(gaps) > 5, gaps
        print(f"10000 lines in {seconds:.1f} s; the page stood still for {max(gaps):.0f} ms at most")
        expect(page.locator("table.many tbody tr")).to_have_count(100)
        expect(page.locator("p.held")).to_contain_text("10\u202f000 lines")
        # Numbers at equal distances are no evidence for a format.
        expect(page.locator(".verdict")).to_contain_text("unknown: no format of this service", timeout=30_000)
        saved = visit.saved(lambda: page.get_by_role("button", name="Save as CSV").click())
        assert [row.split(",")[1] for row in saved.splitlines()[1:]] == ids
        # Open one of the ids, and go back to the table.
        page.locator("table.many a").first.click()
        heading(page, "snowflake")
        page.go_back()
        heading(page, "10\u202f000 ids")
        page.reload()
        heading(page, "10\u202f000 ids")

        # A column whose format is certain.
        page = visit.open()
        visit.paste("\n".join(str(uuid.uuid4()) for _ in range(200)))
        expect(page.locator(".verdict")).to_contain_text("uuid4 (uuid), certain")
        page.get_by_label("Read all as").select_option("uuid4")
        expect(page.locator(".verdict")).to_contain_text("uuid4 (uuid), as you chose")
        expect(page.get_by_label("Read all as")).to_be_focused()

        # Open a CSV file. The page finds the column with the ids, and the user can choose another one.
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "orders.csv"
            rows = [f'"a, b",{PAYMENT[:6]}{at:03},{200 + at}' for at in range(60)]
            file.write_text("customer,order,amount\r\n" + "\r\n".join(rows) + "\r\n")
            page = visit.open()
            page.locator("#file").set_input_files(file)
            heading(page, "60 ids")
            expect(page.get_by_label("Column", exact=True)).to_have_value("1")
            saved = visit.saved(lambda: page.get_by_role("button", name="Save as CSV").click())
            assert len(saved.splitlines()) == 61 and "payment" in saved, saved[:300]
            page.get_by_label("Column", exact=True).select_option("customer")
            heading(page, "No id")
            # Drop the same file on the page.
            page = visit.open()
            dropped = page.evaluate_handle("(text) => { const data = new DataTransfer(); data.items.add(new File([text], 'orders.csv')); return data; }", file.read_text())
            page.dispatch_event("main", "drop", {"dataTransfer": dropped})
            heading(page, "60 ids")

        # Rows with problems.
        page = visit.open()
        visit.paste("\n".join([*ULIDS, ULIDS[0], "n/a"]))
        heading(page, "21 ids")
        page.get_by_label("Show").select_option("rows with problems")
        rows = page.locator("table.many tbody tr")
        expect(rows).to_have_count(3)
        notes = [row.locator("td").last.inner_text() for row in rows.all()]
        assert notes == ["earlier than line 4", "repeats line 1, earlier than line 20", "not an id of ulid"], notes

        # Lines of a log: the ids in them, each with its line.
        page = visit.open()
        visit.paste(f"2026-11-21 03:36:01 INFO order={PAYMENT} user=anna 200\n2026-11-21 03:36:02 WARN nothing here\n2026-11-21 03:36:03 INFO \"{SNOWFLAKE}\" (0190163d-8694-739b-aea5-966c26f8ad90)")
        heading(page, "3 ids")
        lines = page.locator("table.many tbody tr td:first-child").all_inner_texts()
        assert lines == ["1", "2", "3", "3"], lines

        hostile = [
            "<img src=x onerror=alert(1)>",
            "<script>alert(1)</script>",
            "javascript:alert(1)",
            "\u202e0001CZ9I1",
            "1I9ZC1000\u200b",
            "=HYPERLINK(\"https://example.com\")",
            "a\u0000b",
            "%E0%A4%A",
            "../../etc/passwd",
            "?format=flax#x",
        ]
        for text in hostile:
            page = visit.open()
            page.evaluate("(text) => { const field = document.getElementById('text'); field.value = text; field.form.requestSubmit(); }", text)
            answered(page)
            assert page.locator("#view img, #view script").count() == 0, text
            shown = page.locator("#view").inner_text()
            assert "\u202e" not in shown and "\u200b" not in shown, shown
            visit.judge("hostile")
            page.reload()
            answered(page)
        page = visit.open("#/" + "%E2%80%AE0001CZ9I1")
        expect(page.locator("#view")).to_contain_text("\\u202e0001CZ9I1")
        page = visit.open()
        visit.paste("\n".join(hostile))
        expect(page.locator("table.many tbody tr").first).to_be_visible()
        assert page.locator("table.many img, table.many script").count() == 0
        saved = visit.saved(lambda: page.get_by_role("button", name="Save as CSV").click())
        assert "\"'=HYPERLINK(\"\"https://example.com\"\")\"" in saved, saved
        page.get_by_role("button", name="Copy table").click()
        expect(page.locator("#status")).to_have_text("Copied table")
        copied = [line.split("\t") for line in visit.copied().splitlines()]
        assert copied[0] == ["line", "id", "format", "time", "worker", "sequence", "note"] and all(len(cells) == 7 for cells in copied), copied
        assert "'=HYPERLINK(\"https://example.com\")" in [cells[1] for cells in copied], copied

        # Half of a surrogate pair, and texts that are far too long.
        page = visit.open()
        for text in ["1I9ZC\ud800", "x" * (1 << 20), "y\n" * (1 << 14) + "z" * (1 << 20)]:
            page.evaluate("(codes) => { const field = document.getElementById('text'); field.hidden = false; field.value = codes.map((code) => String.fromCharCode(code)).join(''); field.form.requestSubmit(); }", [ord(letter) for letter in text]) if len(text) < 100 else visit.paste(text)
            answered(page)
            visit.judge("too much")
            page = visit.open()
    print(f"{len(hostile)} hostile texts")


def pastes(browser, url):
    """Checks that the page shows the right card or table for each kind of pasted text."""
    with Visit(browser, url) as visit:
        for kind, text, says, more in PASTES:
            page = visit.open()
            visit.paste(text)
            answered(page)
            shown = page.locator("#view").inner_text()
            title = page.locator("#view h2").first.inner_text()
            missing = [part for part in more if part not in shown]
            assert title.startswith(says) and not missing, f"{kind}: {text!r} shows {title!r} without {missing}: {shown}"
    print(f"{len(PASTES)} pastes, {len({kind for kind, *_ in PASTES})} kinds")


def splitter(browser, url):
    """Checks what the splitter finds in a text, and that long hostile texts take linear time. Quadratic time would be hours."""
    with Visit(browser, url) as visit:
        page = visit.open()
        words = lambda text: page.evaluate("(text) => import('./page/splitter.js').then(({ wordsOf }) => wordsOf(text))", text)
        assert words(f"order={PAYMENT}, paid.") == [f"order={PAYMENT}", PAYMENT]
        assert words(f"at 2026-11-21T03:36:01.836Z from 10.0.0.7 by anna@example.com: {SNOWFLAKE}!") == [SNOWFLAKE]
        assert words(f"({PAYMENT}) ({PAYMENT})") == [PAYMENT] * 2
        split = lambda text: page.evaluate("(text) => import('./page/splitter.js').then(({ split }) => split(text))", text)
        assert split("a1\n\n b2 \r\n") == {"rows": [{"line": 1, "text": "a1"}, {"line": 3, "text": "b2"}], "table": None}
        table = split('id;name\n1;"a;""b""\nc"\n2;d')["table"]
        assert table == {"columns": [{"at": 0, "name": "id"}, {"at": 1, "name": "name"}], "head": {"line": 1, "cells": ["id", "name"]}, "rows": [{"line": 2, "cells": ["1", 'a;"b"\nc']}, {"line": 4, "cells": ["2", "d"]}]}, table
        for end in ["\r", "\r\n"]:
            assert split(end.join(["id;name", "1;\"a", "b\"", "2;c", ""]))["table"]["rows"] == [{"line": 2, "cells": ["1", "a\nb"]}, {"line": 4, "cells": ["2", "c"]}], end
        assert [row["cells"] for row in split('a;b\n1;"c\n2;"d"e\n3;"f;g" \n4;6"')["table"]["rows"]] == [["1", '"c'], ["2", '"d"e'], ["3", "f;g"], ["4", '6"']]
        assert split(f"{SNOWFLAKE},\n{SNOWFLAKE},\n{SNOWFLAKE}")["table"] is None
        assert split('{"a":1,"b":2}\n{"a":1,"b":2}')["table"] is None
        hostile = [".", "=", "a.", ".a", "=.a1", '"', '",', "a,", "[", "\\", " ", "\n", ",\n", "1.", "é.", "x@", "2026-11-21", "\t\"", '""', '"",', '" ,', '"a,']
        for text in hostile:
            page.evaluate("(text) => import('./page/splitter.js').then(({ split, wordsOf }) => { const long = text.repeat(1_000_000 / text.length); split(long); wordsOf(long); split(`${long}!\n${long}!`); wordsOf(`${long}!`); })", text)
        visit.paste("." * 60_000)
        heading(page, "No id is as long as this")
    print(f"{len(hostile)} hostile texts")


def weight(browser, url):
    """Checks how many bytes of the page's files, including headers, a browser loads for each view."""
    for hash_, says in [("", "Examples"), (f"#/{SNOWFLAKE}", "snowflake"), (f"#/{PAYMENT}%0A{SNOWFLAKE}", "2 ids"), ("#mint", "Mint ids"), ("#formats", "Formats"), ("#numbers", "Numbers without gaps")]:
        with Visit(browser, url) as visit:
            session = visit.context.new_cdp_session(visit.page)
            session.send("Network.enable")
            names, loaded = {}, []
            session.on("Network.requestWillBeSent", lambda event: names.update({event["requestId"]: urlsplit(event["request"]["url"]).path}))
            session.on("Network.loadingFinished", lambda event: loaded.append((names[event["requestId"]], event["encodedDataLength"])))
            visit.page.goto(url + hash_)
            heading(visit.page, says)
            files = [count for path, count in loaded if path == "/" or path.startswith("/page/")]
            print(f"{hash_ or 'the start'}: {len(files)} files of {sum(files)} bytes")
            assert len(files) > 8 and sum(files) < 60_000, loaded


def history(browser, url):
    """Checks that back, forward and reload show the same view, and that unknown fragments and queries show the start page."""
    with Visit(browser, url) as visit:
        start = lambda page: expect(page.get_by_role("heading", name="Examples")).to_be_visible()
        for hash_ in ["#constructor", "#__proto__", "#toString/x", "#nothing", "#decode", "?utm_source=x", "?utm_source=x&fbclid=1#"]:
            start(visit.open(hash_))
        page = visit.open(f"?utm_source=x#/{PAYMENT}")
        heading(page, "payment")
        page.get_by_role("button", name="Copy the link to this id").click()
        assert visit.copied() == f"{url}#/{PAYMENT}", visit.copied()

        # The examples.
        for name, says in [("0190163d-8694-739b-aea5-966c26f8ad90", "uuid7"), ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "ulid"), ("507f1f77bcf86cd799439011", "objectid"), ("175928847299117063", "snowflake"), (PAYMENT, "payment"), ("and 3 more rows", "4 ids")]:
            page = visit.open()
            page.get_by_role("link", name=name).click()
            heading(page, says)
        expect(page.locator(".verdict")).to_contain_text("uuid7 (uuid), likely")

        # The address contains the column. Filter the column, open one of its ids, and go back.
        page = visit.open()
        ids = [str(int(SNOWFLAKE) + at * 4_194_304_000) for at in range(60)]
        visit.paste("\n".join(ids[:40]))
        heading(page, "40 ids")
        assert "#/" in page.url
        page.locator("#filter").fill(ids[30])
        page.locator("table.many a").click()
        heading(page, "snowflake")
        page.go_back()
        expect(page.locator("#filter")).to_have_value(ids[30])
        expect(page.locator("table.many tbody tr")).to_have_count(1)
        assert page.locator("#text").input_value().split() == ids[:40]
        page.reload()
        heading(page, "40 ids")
        page.go_back()
        start(page)
        assert page.locator("#text").input_value() == ""
        page.go_forward()
        heading(page, "40 ids")

        # A text that is too long for the address is stored in the entry of the history.
        page = visit.open()
        visit.paste("\n".join(ids * 3))
        heading(page, "180 ids")
        assert page.url == f"{url}#many"
        page.reload()
        heading(page, "180 ids")
        assert len(page.locator("#text").input_value().split()) == 180
        # Both entries have the same address.
        visit.paste("\n".join(ids * 4))
        heading(page, "240 ids")
        page.go_back()
        heading(page, "180 ids")
        page.go_forward()
        heading(page, "240 ids")

        # After going back, minted ids are still shown, and a view keeps its scroll position.
        page = visit.open("#mint/flax")
        page.get_by_role("button", name="Mint", exact=True).click()
        heading(page, "10 ids of flax")
        minted = page.locator(".ids li").all_inner_texts()
        page.locator(".ids a").first.click()
        heading(page, "flax")
        page.go_back()
        assert page.locator(".ids li").all_inner_texts() == minted
        page = visit.open("#formats")
        heading(page, "Formats")
        page.get_by_role("link", name="xid", exact=True).scroll_into_view_if_needed()
        until(page, "history.state.y > 500")
        place = page.evaluate("scrollY")
        page.get_by_role("link", name="xid", exact=True).click()
        heading(page, "xid")
        page.go_back()
        until(page, "(place) => Math.abs(scrollY - place) < 2", place)
        page.reload()
        until(page, "(place) => Math.abs(scrollY - place) < 2", place)

        # The age of an id is updated when the user returns to its view, and when the user returns to the tab.
        moments = [("2026-11-21T03:36:04Z", "2 seconds ago"), ("2026-11-21T04:40:00Z", "1 hour ago"), ("2026-11-21T05:40:00Z", "2 hours ago")]
        page.clock.set_fixed_time(moments[0][0])
        page = visit.open(f"#/{SNOWFLAKE}")
        ago = page.locator(".times strong").last
        expect(ago).to_have_text(moments[0][1])
        page.get_by_role("link", name="Formats", exact=True).click()
        heading(page, "Formats")
        page.clock.set_fixed_time(moments[1][0])
        page.go_back()
        expect(ago).to_have_text(moments[1][1])
        page.clock.set_fixed_time(moments[2][0])
        page.dispatch_event("html", "visibilitychange")
        expect(ago).to_have_text(moments[2][1])
    with Visit(browser, url, refusals=[404]) as visit:
        heading(visit.open("#formats/constructor"), "There is no such format")


def phone(browser, url):
    """Checks a phone of 390 pixels: the answer is visible without scrolling, and the table of a column scrolls by itself."""
    with Visit(browser, url, viewport={"width": 390, "height": 664}, is_mobile=True, has_touch=True) as visit:
        for text in [SNOWFLAKE, PAYMENT, "0190163d-8694-739b-aea5-966c26f8ad90"]:
            page = visit.open(f"#/{text}")
            answered(page)
            for part in ["h2", ".times", "p:has(> strong)"]:
                box = page.locator(f".answer {part}").last.bounding_box()
                assert box["y"] + box["height"] <= 664, (text, part, box)
            tops = page.locator("nav a").evaluate_all("(links) => links.map((link) => link.getBoundingClientRect().top)")
            assert len(set(tops)) == 1, tops
            for cell in page.locator(".answer ~ .scroll td").all():
                assert cell.evaluate("(cell) => getComputedStyle(cell, '::before').content") not in ("none", ""), "a cell shows its heading"
        page = visit.open()
        visit.paste("\n".join(str(uuid.uuid4()) for _ in range(30)))
        heading(page, "30 ids")
        visit.fits("30 UUIDs")
        height = page.evaluate("document.documentElement.scrollHeight")
        assert height < 2_600, height
        lines = page.locator("table.many bdi").evaluate_all("(ids) => ids.map((id) => id.getClientRects().length)")
        assert lines == [1] * 30, lines


def tokens(browser, url, good, reader):
    """Checks the dialog for a token. A wrong token is refused, a right one is kept only in memory, and a missing scope is named."""
    with Visit(browser, url, refusals=(401, 403)) as visit:
        page = visit.open(f"#/{PAYMENT}")
        dialog = page.locator("#token-dialog")
        expect(dialog).to_be_visible()
        expect(page.get_by_label("Token", exact=True)).to_be_focused()
        visit.judge_now("asked for a token")
        page.get_by_label("Token", exact=True).fill("not-a-token")
        page.keyboard.press("Enter")
        expect(page.locator("#token-why")).to_contain_text("not accepted")
        # If the user closes the dialog, the page shows the problem.
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(page.locator(".problem")).to_be_visible()
        page.get_by_role("button", name="Decode").click()
        expect(dialog).to_be_visible()
        page.get_by_label("Token", exact=True).fill(reader)
        page.get_by_role("button", name="Use this token").click()
        heading(page, "payment")
        kept = page.evaluate("[localStorage.length, sessionStorage.length, document.cookie, JSON.stringify(history.state)]")
        assert kept[:3] == [0, 0, ""] and reader not in kept[3], kept
        assert reader not in page.content() and reader not in page.url
        # This token can read, but not mint. The page names the missing scope.
        page.get_by_role("link", name="Mint", exact=True).click()
        expect(page.locator(".command")).to_contain_text("$TOKEN")
        page.get_by_role("button", name="Mint", exact=True).click()
        expect(page.locator(".problem")).to_contain_text("mint")
        visit.judge("refused")
        # The page no longer offers to mint.
        expect(page.get_by_role("button", name="Mint", exact=True)).to_have_count(0)
        page.get_by_role("link", name="Formats", exact=True).click()
        page.get_by_role("link", name="payment", exact=True).click()
        heading(page, "payment")
        expect(page.get_by_role("link", name="Mint some")).to_have_count(0)
        page.get_by_role("link", name="Mint", exact=True).click()
        expect(page.locator("main")).to_contain_text("Minting was refused")
        # After the token is forgotten, the page asks for one again.
        page.get_by_role("button", name="Forget the token").click()
        expect(dialog).to_be_visible()
        page.get_by_label("Token", exact=True).fill(good)
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Mint", exact=True).click()
        heading(page, "10 ids of snowflake")
        asked = sum(1 for text in visit.messages if text.startswith(REFUSED + "401"))
        print(f"asked {asked} times for a token")


def behind_proxy(browser, url):
    """Opens every view and mints behind a proxy with TLS and a path prefix."""
    with Visit(browser, url) as visit:
        for name, hash_, says in VIEWS:
            page = visit.open(hash_)
            heading(page, says)
        page = visit.open("#mint")
        expect(page.locator(".command")).to_contain_text(f"{url}ids/snowflake?count=10")
        page.get_by_role("button", name="Mint", exact=True).click()
        heading(page, "10 ids of snowflake")
        page.get_by_role("link", name="Decode").click()
        page.get_by_role("link", name=PAYMENT).click()
        heading(page, "payment")
        page.get_by_role("button", name="Copy the link to this id").click()
        assert visit.copied() == f"{url}#/{PAYMENT}", visit.copied()


def troubles(browser, url):
    """Checks errors: a file that cannot be read, a proxy that redirects to a sign-in page, and a request that fails late."""
    with Visit(browser, url) as visit:
        page = visit.open()
        file = {"name": "ids.txt", "mimeType": "text/plain", "buffer": PAYMENT.encode()}
        page.evaluate("() => { window.bytes = File.prototype.arrayBuffer; File.prototype.arrayBuffer = () => Promise.reject(new DOMException('It is gone.', 'NotFoundError')); }")
        page.locator("#file").set_input_files(file)
        expect(page.locator(".problem")).to_contain_text("The file cannot be read")
        expect(page.locator(".problem")).to_contain_text("It is gone.")
        expect(page.locator("#file")).to_have_value("")
        page.evaluate("() => { File.prototype.arrayBuffer = window.bytes; }")
        page.locator("#file").set_input_files(file)
        heading(page, "payment")

        # Show an id of a format that begins in the year 0.
        early = lambda answer: answer.text().replace("2026-11-21T03:36:01.836Z", "0000-03-15T12:00:00.000Z")
        page.route("**/decode?*", lambda route: route.fulfill(response=(answer := route.fetch()), body=early(answer)))
        page = visit.open(f"#/{SNOWFLAKE}")
        expect(page.locator(".times")).to_contain_text("Wed, 15 Mar 1 BC")
        page.unroute("**/decode?*")

        page = visit.open()
        expect(page.locator(".welcome")).to_contain_text("Your browser’s history keeps it.")
        page.route("**/decode?*", lambda route: route.fulfill(status=302, headers={"location": f"{url}sign-in"}))
        visit.paste(PAYMENT)
        expect(page.locator(".problem")).to_contain_text("sign in again")
    with Visit(browser, url, refusals=[503]) as visit:
        # The request for the description of a format fails after another format was chosen. It fails again when the user
        # returns to the format.
        page = visit.open("#mint")
        chosen, button = page.get_by_label("Format", exact=True), page.get_by_role("button", name="Mint", exact=True)
        held = []
        page.route("**/formats/siq", lambda route: held.append(route))
        chosen.select_option("siq")
        chosen.select_option("flax")
        button.click()
        heading(page, "10 ids of flax")
        held[0].fulfill(status=503)
        page.evaluate("fetch('formats').then((answer) => answer.text())")
        heading(page, "10 ids of flax")
        with page.expect_request("**/formats/siq"):
            chosen.select_option("siq")
        until(page, "document.querySelector('.card') === null")
        held[1].fulfill(status=503)
        expect(page.locator(".problem")).to_be_visible()
        expect(button).to_be_disabled()
        page.unroute("**/formats/siq")
        page.get_by_role("button", name="Try again").click()
        expect(chosen).to_be_focused()
        button.click()
        heading(page, "10 ids of siq")


def cannot_mint(browser, url):
    """Checks that the page of a node that cannot mint gives the reason, and still decodes ids."""
    with Visit(browser, url, refusals=(503,)) as visit:
        page = visit.open("#mint")
        page.get_by_role("button", name="Mint", exact=True).click()
        expect(page.locator(".problem")).to_contain_text("The clock is behind ids already minted")
        visit.judge("cannot mint")
        link = page.locator(".problem a")
        assert link.get_attribute("href") == "problems/clock-behind"
        page = visit.open(f"#/{PAYMENT}")
        heading(page, "payment")


SCENARIOS = {function.__name__: function for function in [views, pastes, splitter, weight, history, phone, by_mouse, by_keyboard, rows, spans, numbers, no_numbers, columns, tokens, behind_proxy, troubles, cannot_mint]}

with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.*"])
    for attempts_left in (2, 1, 0):
        Visit.looked_at = dict.fromkeys(Visit.looked_at, 0)
        try:
            SCENARIOS[sys.argv[1]](chromium, *sys.argv[2:])
            break
        except Exception:
            if not (Visit.was_interrupted and attempts_left):
                raise
            print("repeated, because the network of the browser has changed")
    chromium.close()
print(", ".join(f"{count} {what}" for what, count in Visit.looked_at.items()))
print("done")
