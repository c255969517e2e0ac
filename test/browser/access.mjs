// Whether a page can be used by everybody: on small and large screens, with the keyboard, with a screen reader, with little sight.
import assert from 'node:assert/strict';
import {readFile} from 'node:fs/promises';
import {createRequire} from 'node:module';
import {join} from 'node:path';

const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// The widths at which pages are looked at: phones, windows, the steps of the style and to each side of them, a screen on a wall.
const widths = [320, 360, 414, 600, 768, 860, 875, 1023, 1025, 1100, 1280, 1300, 1920, 2399, 2400, 3840];

// shoot takes screenshots of a page, unless shots is empty, and looks whether all of it fits windows of all widths.
export async function shoot(page, shots, name) {
  const pictures = shots ? [['light', 'light', 1100, 800], ['dark', 'dark', 1100, 800], ['phone', 'light', 360, 640],
    ['phone-dark', 'dark', 360, 640], ['wall', 'light', 3840, 2160], ['wall-dark', 'dark', 3840, 2160]] : [];
  for (const [suffix, colorScheme, width, height] of pictures) {
    await page.emulateMedia({colorScheme});
    await page.setViewportSize({width, height});
    const tall = await page.evaluate(() => document.documentElement.scrollHeight > 8000);
    await page.screenshot({path: join(shots, `${name}-${suffix}.png`), fullPage: width < 2000 && !tall});
  }
  await page.emulateMedia({colorScheme: 'light'});
  for (const width of widths) {
    await page.setViewportSize({width, height: 800});
    const [wide, most] = await page.evaluate(() => [document.documentElement.scrollWidth,
      [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.sr, thead')).slice(0, 3).map(e => e.outerHTML.slice(0, 120))]);
    assert.ok(wide <= width && most.length === 0, `${name}: ${wide} pixels wide in a window of ${width}: ${most.join('\n')}`);
  }
  await page.setViewportSize({width: 1100, height: 800});
}

// axe finds no violation, in light and in dark, in a window and on a phone. In the dark, colors alone are different.
export async function axe(page, name) {
  await page.evaluate(axeSource);
  for (const [colorScheme, width] of [['light', 1100], ['dark', 1100], ['light', 360], ['dark', 360]]) {
    await page.emulateMedia({colorScheme});
    await page.setViewportSize({width, height: 800});
    const rules = colorScheme === 'dark' ? {runOnly: {type: 'rule', values: ['color-contrast', 'link-in-text-block']}} : {};
    const found = await page.evaluate(rules => axe.run(document, {resultTypes: ['violations'], ...rules}).then(r => r.violations.map(v =>
      `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + ' ' + n.failureSummary).join('\n')}`)), rules);
    assert.deepEqual(found, [], `${name}, ${colorScheme}, ${width} pixels wide`);
  }
  await page.emulateMedia({colorScheme: 'light'});
  await page.setViewportSize({width: 1100, height: 800});
}

// keyboard goes through the page with Tab: everything that can be used gets the focus once, in the order of the page, visibly, and
// the focus leaves the page at its end.
export async function keyboard(page, name) {
  await page.evaluate(() => {
    const top = document.getElementById('top'); // where the first Tab begins
    top.tabIndex = -1;
    top.focus();
    top.removeAttribute('tabindex');
    window.scrollTo(0, 0);
    window.focused = [];
  });
  const usable = await page.evaluate(() => [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')]
    .filter(e => e.checkVisibility()).length);
  for (let i = 0; i <= usable + 5; i++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      if (!e || e === document.body) return 'end';
      if (window.focused.includes(e)) return window.focused[0] === e ? 'end' : 'again: ' + e.outerHTML.slice(0, 200);
      const last = window.focused.at(-1);
      if (last && !(last.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)) return 'backwards: ' + e.outerHTML.slice(0, 200);
      const style = getComputedStyle(e), box = e.getBoundingClientRect();
      if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2) return 'the focus cannot be seen: ' + e.outerHTML.slice(0, 200);
      if (box.bottom < 0 || box.top > innerHeight) return 'out of sight: ' + e.outerHTML.slice(0, 200);
      window.focused.push(e);
      return '';
    });
    if (at === 'end') break;
    assert.equal(at, '', name);
  }
  const reached = await page.evaluate(() => window.focused.length);
  assert.equal(reached, usable, `${name}: the keyboard reaches ${reached} of ${usable} elements`);
  return usable;
}

// tree returns what a screen reader is told: Chromium's tree of accessibility.
async function tree(page) {
  const session = await page.context().newCDPSession(page);
  const {nodes} = await session.send('Accessibility.getFullAXTree');
  await session.detach();
  const byId = new Map(nodes.map(n => [n.nodeId, n]));
  const kids = n => (n.childIds || []).map(id => byId.get(id)).filter(k => k).flatMap(k => k.ignored || k.role.value === 'none' || k.role.value === 'generic' ? kids(k) : [k]);
  const all = n => [n, ...kids(n).flatMap(all)];
  return {nodes: all(nodes[0]), kids}; // in the order of the page
}

// reader looks at the page as a screen reader shows it.
export async function reader(page, name) {
  const {nodes, kids} = await tree(page);
  const role = r => nodes.filter(n => n.role.value === r), text = n => (n.name && n.name.value || '').trim();
  const level = n => n.properties.find(p => p.name === 'level').value.value;
  const headings = role('heading').map(level);
  assert.equal(headings.filter(l => l === 1).length, 1, `${name}: one first heading`);
  headings.forEach((l, i) => assert.ok(l <= (headings[i - 1] || 0) + 1, `${name}: headings ${headings}`));
  assert.equal(role('main').length, 1);
  for (const r of ['link', 'button', 'textbox', 'searchbox', 'combobox', 'image', 'img', 'progressbar', 'table', 'navigation', 'heading']) {
    for (const n of role(r)) assert.notEqual(text(n), '', `${name}: a ${r} without a name`);
  }
  let cells = 0;
  for (const table of role('table')) {
    const all = kids(table).flatMap(g => g.role.value === 'row' ? [g] : kids(g)).filter(r => r.role.value === 'row').map(r => kids(r).map(c => c.role.value));
    const [head, ...rows] = all;
    assert.ok(head.length > 1 && head.every(r => r === 'columnheader'), `${name}: the head of ${text(table)} is ${head}`);
    for (const row of rows) {
      assert.ok(row.every(r => r === 'cell' || r === 'gridcell' || r === 'rowheader') && row.length <= head.length, `${name}: a row of ${text(table)} is ${row} under ${head}`);
      cells += row.length;
    }
  }
  return {headings: headings.length, tables: role('table').length, cells, images: role('image').length + role('img').length};
}

// quiet holds that nothing is announced while nothing changes: for three times that the page asks the node.
export async function quiet(page) {
  await page.evaluate(() => {
    window.said = [];
    for (const e of document.querySelectorAll('[role=status], [role=alert], [aria-live]')) {
      new MutationObserver(list => window.said.push(...list.map(m => m.target.textContent))).observe(e, {subtree: true, childList: true, characterData: true, attributes: true});
    }
  });
  for (let i = 0; i < 3; i++) await page.waitForResponse(r => r.request().resourceType() === 'fetch');
  assert.deepEqual(await page.evaluate(() => window.said), [], 'announced while nothing has changed');
}

// everybody is all of it.
export async function everybody(page, shots, name) {
  await shoot(page, shots, name);
  await axe(page, name);
  const stops = await keyboard(page, name);
  console.log(name, stops, 'elements by the keyboard;', JSON.stringify(await reader(page, name)));
  await page.setViewportSize({width: 360, height: 640});
  await reader(page, name + ' on a phone');
  if (stops < 100) await keyboard(page, name + ' on a phone');
  await page.setViewportSize({width: 1100, height: 800});
}
