/** The long forms run files that exist, with numbers that these files read. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { longForms } from "../../tools/docs/long-forms.js";

describe("the long form", () => {
  for (const [name, { files, numbers = {} }] of Object.entries(longForms)) {
    it(`the long form ${name} sets only numbers that its files read`, () => {
      const texts = files.filter((file) => !file.includes("*")).map((file) => readFileSync(`test/${file}.ts`, "utf8"));
      for (const variable of Object.keys(numbers)) {
        expect(texts.join("\n")).to.match(new RegExp(`(?:process\\.env\\[|onlyWith\\()"${variable}"`));
      }
    });
  }
});
