// The style sheet of the dashboard, in light and dark, from a phone to a wide screen.

/** Every colour has the contrast that WCAG AA requires, in both schemes. */
export const styleText = `:root {
  color-scheme: light dark;
  --ground: #ffffff; --raised: #f6f8fa; --line: #d1d9e0; --text: #1f2328; --quiet: #59636e; --link: #0550ae;
  --good: #0550ae; --good-ground: #ddf4ff; --warn: #7d4e00; --warn-ground: #fff1d6; --bad: #a40e26; --bad-ground: #ffebe9;
  --mark: #fff3b0; --gone: #ffd7d5; --come: #ccf0d4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0d1117; --raised: #161b22; --line: #3d444d; --text: #f0f6fc; --quiet: #9aa4af; --link: #79b8ff;
    --good: #a5d6ff; --good-ground: #10294a; --warn: #f2c077; --warn-ground: #3a2705; --bad: #ffb3ad; --bad-ground: #4a1417;
    --mark: #5c4a00; --gone: #67171b; --come: #10461f;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--ground); color: var(--text); font: 1rem/1.5 system-ui, -apple-system, 'Segoe UI', sans-serif;
  overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: .9em; }
a { color: var(--link); text-underline-offset: .15em; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; border-radius: 3px; }
main:focus { outline: none; }
.skip { position: absolute; left: -100vw; top: 0; padding: .5rem 1rem; background: var(--ground); z-index: 1; }
.skip:focus { left: 0; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .25rem 1.5rem; padding: .75rem 1.25rem;
  border-bottom: 1px solid var(--line); background: var(--raised); }
.brand { font-weight: 700; letter-spacing: .02em; }
.instance { margin: 0 0 0 auto; color: var(--quiet); font-size: .875rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem .4rem; margin: 0; padding: 0; list-style: none; }
nav li a { display: inline-block; padding: .2rem .6rem; border-radius: 6px; text-decoration: none; color: var(--text); }
nav li a:hover { background: var(--line); }
nav li a[aria-current] { background: var(--good-ground); color: var(--good); font-weight: 600; }
.collections, .tabs { margin: 0 0 1.25rem; padding-bottom: .5rem; border-bottom: 1px solid var(--line); }
main { max-width: 84rem; margin: 0 auto; padding: 1.25rem; }
footer { max-width: 84rem; margin: 0 auto; padding: .5rem 1.25rem 2rem; color: var(--quiet); font-size: .875rem; }
h1 { margin: 0 0 1rem; font-size: 1.6rem; line-height: 1.25; }
h2 { margin: 2rem 0 .75rem; font-size: 1.2rem; }
h3 { margin: 0 0 .5rem; font-size: 1rem; }
section:first-child > h2 { margin-top: 0; }
p { margin: 0 0 .75rem; max-width: 60rem; }
small, .none, .next { color: var(--quiet); }
small { font-size: .85em; white-space: nowrap; }
time, .whole, .whole .text { white-space: nowrap; }
.name { font-size: 1.15rem; }
.wrong { color: var(--bad); font-weight: 600; }
.badge { display: inline-block; padding: 0 .5rem; border-radius: 1rem; border: 1px solid currentcolor; font-size: .8rem;
  font-weight: 600; line-height: 1.5; white-space: nowrap; }
.badge.published, .badge.unchanged { color: var(--good); background: var(--good-ground); }
.badge.unchanged { background: none; }
.badge.refused { color: var(--warn); background: var(--warn-ground); }
.badge.failed { color: var(--bad); background: var(--bad-ground); }
.badge.otherwise { color: var(--quiet); }
.calm { padding: .75rem 1rem; border-left: 4px solid var(--good); background: var(--raised); }
.problems { display: grid; gap: .75rem; margin: 0; padding: 0; list-style: none; }
.problems > li { padding: .75rem 1rem; border-left: 4px solid var(--bad); background: var(--raised); border-radius: 0 6px 6px 0; }
.problems p { margin-bottom: .4rem; }
.problems p:last-child { margin-bottom: 0; }
.commands { margin: 0 0 .75rem; padding: 0; list-style: none; }
.commands code { display: inline-block; margin: .1rem 0; padding: .15rem .5rem; background: var(--ground);
  border: 1px solid var(--line); border-radius: 6px; }
.cards { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); margin-bottom: 1rem; }
.card { padding: 1rem; border: 1px solid var(--line); border-radius: 8px; }
.facts { display: grid; gap: .35rem; margin: 0 0 1rem; }
.facts > div { display: grid; grid-template-columns: minmax(6rem, 11rem) 1fr; gap: 0 1rem; }
.facts dt { color: var(--quiet); }
.facts dd { margin: 0; min-width: 0; }
.card .facts { margin: 0; }
.card .facts > div { grid-template-columns: 8rem 1fr; }
.card .facts time { white-space: normal; }
.scroll { width: fit-content; max-width: 100%; overflow-x: auto; margin: 0 0 1rem; border: 1px solid var(--line); border-radius: 8px; }
.scroll pre { margin: 0; max-height: 40rem; padding: .75rem 1rem; overflow-wrap: anywhere; white-space: pre-wrap; }
table { min-width: min(36rem, calc(100vw - 4rem)); border-collapse: collapse; }
caption { padding: .6rem; text-align: start; font-weight: 600; }
th, td { padding: .4rem .6rem; border-top: 1px solid var(--line); text-align: start; vertical-align: top; font-weight: 400; }
thead th { color: var(--quiet); font-size: .85rem; white-space: nowrap; background: var(--raised); }
td, tbody th { min-width: 4rem; }
td:first-child, tbody th { min-width: 6.5rem; }
.number { width: 1%; text-align: end; white-space: nowrap; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
.unseen { padding: 0 .2em; border: 1px solid var(--line); border-radius: 3px; background: var(--raised); color: var(--quiet);
  font-size: .85em; unicode-bidi: isolate; }
del { background: var(--gone); } ins { background: var(--come); text-decoration: none; }
mark { background: var(--mark); color: inherit; }
.asks { display: flex; flex-wrap: wrap; align-items: end; gap: .75rem; margin: 0 0 1rem; }
.asks label { display: grid; gap: .15rem; font-size: .875rem; color: var(--quiet); }
input, select, button { max-width: 100%; min-height: 2.25rem; padding: .25rem .6rem; border: 1px solid var(--quiet); border-radius: 6px;
  background: var(--ground); color: var(--text); font: inherit; }
button { background: var(--good-ground); color: var(--good); border-color: var(--good); font-weight: 600; cursor: pointer; }
.pages { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 1rem 0; }
.rejects { display: grid; gap: 1rem; margin: 0 0 1rem; padding: 0; list-style: none; }
.rejects > li { padding: .75rem 1rem; border: 1px solid var(--line); border-radius: 8px; }
.rejects p { margin-bottom: .4rem; }
.raw { margin: 0; padding: .5rem .75rem; background: var(--raised); border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere; }
.change { margin-bottom: 1.5rem; }
.change caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; padding: 0; }
.change table { table-layout: fixed; width: 100%; min-width: 34rem; }
.change .scroll { width: auto; }
.change th:first-child { width: 9rem; }
@media (max-width: 40rem) {
  header, main, footer { padding-inline: .75rem; }
  .facts > div, .card .facts > div { grid-template-columns: 1fr; margin-bottom: .25rem; }
  .asks, .asks label { width: 100%; }
  .change table { min-width: 0; font-size: .9rem; }
  .change th:first-child { width: 5.5rem; }
  th, td { padding-inline: .5rem; }
}
@media (prefers-contrast: more) { :root { --quiet: var(--text); --line: var(--text); } }
`;
