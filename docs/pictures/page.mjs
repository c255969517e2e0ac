// Takes the status page of a running node, in light and dark: node page.mjs URL CHROMIUM DIRECTORY.
import {createRequire} from 'node:module';
import {join} from 'node:path';

const {chromium} = createRequire(new URL('../../test/browser/package.json', import.meta.url))('playwright-core');
const [url, executablePath, dir] = process.argv.slice(2);

const browser = await chromium.launch({executablePath, headless: true, args: ['--no-sandbox', '--disable-gpu']});
const page = await browser.newPage({viewport: {width: 1100, height: 730}});
await page.goto(url);
await page.waitForFunction(() => document.querySelector('section[data-name=products] progress')?.value >= 20);
await page.selectOption('#db', 'words');
await page.fill('#key', 'apple');
await page.press('#key', 'Enter');
await page.locator('#answer dl').waitFor();
await page.evaluate(() => { document.activeElement.blur(); window.scrollTo(0, 0); });
for (const colorScheme of ['light', 'dark']) {
  await page.emulateMedia({colorScheme});
  await page.screenshot({path: join(dir, `status-${colorScheme}.png`)});
}
await browser.close();
