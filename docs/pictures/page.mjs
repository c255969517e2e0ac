// Takes the status page of a running node, in light and dark: node page.mjs URL CHROMIUM DIRECTORY. Clients read keys meanwhile.
import {createRequire} from 'node:module';
import http from 'node:http';
import {join} from 'node:path';

const {chromium} = createRequire(new URL('../../test/browser/package.json', import.meta.url))('playwright-core');
const [url, executablePath, dir] = process.argv.slice(2);

// Clients read products, a few of which do not exist, and words.
const records = await (await fetch(url + '/products?limit=1000&keys_only')).text();
const keys = records.trim().split('\n').map(line => JSON.parse(line).key).filter(key => key);
const agent = new http.Agent({keepAlive: true, maxSockets: 8});
let reading = true;
async function client(n) {
  for (let i = 0; reading; i++) {
    const path = i % 5 === 4 ? '/words/apple' : i % 97 ? '/products/' + encodeURIComponent(keys[(i * 7 + n) % keys.length]) : '/products/none';
    await new Promise(done => http.get(url + path, {agent}, r => r.resume().on('end', done)).on('error', done));
  }
}
const clients = [0, 1, 2, 3].map(client);

const browser = await chromium.launch({executablePath, headless: true, args: ['--no-sandbox', '--disable-gpu']});
const page = await browser.newPage({viewport: {width: 1100, height: 860}});
await page.goto(url);
await page.waitForFunction(() => document.querySelector('#databases progress')?.value >= 40);
await page.evaluate(() => { document.activeElement.blur(); window.scrollTo(0, 0); });
for (const colorScheme of ['light', 'dark']) {
  await page.emulateMedia({colorScheme});
  await page.screenshot({path: join(dir, `status-${colorScheme}.png`)});
}
await browser.close();
reading = false;
await Promise.all(clients);
agent.destroy();
