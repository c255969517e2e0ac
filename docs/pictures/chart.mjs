// Draws the bars of a file of figures: node chart.mjs figures.json chart.svg.
import {readFileSync, writeFileSync} from 'node:fs';

const [from, to] = process.argv.slice(2);
const {panels} = JSON.parse(readFileSync(from, 'utf8'));
const escape = s => s.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const [width, left, right, row, bar] = [760, 170, 90, 26, 16];
let y = 24;
const out = [];
for (const {title, note, bars} of panels) {
  out.push(`<text class="h" x="8" y="${y}">${escape(title)}</text>`, `<text class="m" x="8" y="${y + 18}">${escape(note)}</text>`);
  y += 32;
  const most = Math.max(...bars.map(b => b.value));
  for (const {name, value, floor} of bars) {
    const long = Math.round((width - left - right) * value / most);
    const kind = name === 'sequins' ? 'us' : floor ? 'floor' : 'them';
    out.push(`<text x="${left - 10}" y="${y + 13}" text-anchor="end">${escape(name)}</text>`,
      `<rect class="${kind}" x="${left}" y="${y}" width="${long}" height="${bar}" rx="2"/>`,
      `<text x="${left + long + 8}" y="${y + 13}">${value.toLocaleString('en-US')}</text>`);
    y += row;
  }
  y += 30;
}
writeFileSync(to, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y - 26}" width="${width}" height="${y - 26}" role="img" aria-label="${escape(panels.map(p => p.title).join('; '))}">
<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f; }
.h { font-weight: 600; font-size: 14px; } .m { fill: #57606a; font-size: 12px; }
.us { fill: #1a7f5a; } .them { fill: #8aa4c8; } .floor { fill: #c4c9d0; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .m { fill: #9198a1; }
  .us { fill: #3fb68b; } .them { fill: #56719a; } .floor { fill: #4a515b; }
}
</style>
${out.join('\n')}
</svg>
`);
