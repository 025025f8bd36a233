// The first job that is to be pasted, at a server that accepts only TLS and wants a password.
import { Visit, api, assert, scenario } from "./browser.mjs";

await scenario(async (browser) => {
  const { port, tls_port } = await api("GET", "/api/v1/session");
  assert.equal(port, null);
  const visit = await Visit.open(browser);
  const { page } = visit;
  await visit.log_in();
  const told = async (user) => {
    await visit.see(".first-job pre",
      `redis-cli --tls -p ${tls_port} --user ${user} -a PASSWORD Q.ADD mail`);
    const url = `rediss://${user}:PASSWORD@127.0.0.1:${tls_port}`;
    await visit.click(".first-job button", "Python");
    await visit.see(".first-job pre", `Queue("mail", "${url}")`);
    await visit.click(".first-job button", "TypeScript");
    await visit.see(".first-job pre", `{ url: '${url}' }`);
    await visit.see(".first-job p", "put a user's name and password there");
    await visit.see(".first-job p", "This server accepts only TLS.");
    await visit.see_none(".first-job p", "6379");
  };
  await told("USER");
  // A user who has logged in by password is named.
  await visit.click(".bar button", "Log out");
  await page.fill("input[name=user]", "carol");
  await page.fill("input[name=password]", "of-carol");
  await page.keyboard.press("Enter");
  await told("carol");
  await visit.close();
});
