//! How the page looks.

pub(super) const CSS: &str = "
:root{color-scheme:light dark;--ink:#1b1b1f;--soft:#55555c;--paper:#fff;--line:#c9c9d0;--band:#f3f3f6;--link:#0050a0}
@media (prefers-color-scheme:dark){:root{--ink:#e8e8ec;--soft:#b4b4bc;--paper:#16171b;--line:#45464d;--band:#212228;--link:#7cc0ff}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:76rem;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
a{color:var(--link)}
h1{font-size:1.7rem;margin:.2em 0}
h2{font-size:1.3rem;margin:2.2rem 0 .5rem;border-bottom:1px solid var(--line);scroll-margin-top:1rem}
h3{font-size:1.05rem;margin:1.2rem 0 .3rem}
header p,footer p,figcaption,caption,dd{color:var(--soft)}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;margin:.5rem 0;list-style:none}
.skip{position:absolute;left:-100vw;background:var(--paper);padding:.5rem 1rem;z-index:1}
.skip:focus{left:1rem}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
figure{margin:1rem 0;min-width:0}
figure.wide{grid-column:1/-1}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,27rem),1fr));gap:0 1.5rem}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,27rem),1fr));gap:1rem}
.scroll{overflow-x:auto;max-width:100%}
.plot{display:block;width:100%;min-width:26rem;max-width:42rem;height:auto}
figcaption{max-width:70ch;margin:.4rem 0}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.3rem 0}
th,td{padding:.25rem .7rem .25rem 0;text-align:right;white-space:nowrap}
th{font-weight:600}
th:first-child,td.text{text-align:left}
tbody tr:nth-child(odd){background:var(--band)}
details{margin:.4rem 0}
summary{cursor:pointer}
code{font:.85em ui-monospace,monospace;overflow-wrap:anywhere}
dt{font-weight:600}
dd{margin:0 0 .6rem}
@media print{nav,.skip{display:none}body{max-width:none;padding:0}.scroll{overflow:visible}.plot{min-width:0}figure,table{break-inside:avoid}h2{break-after:avoid}}
";
