#!/bin/sh
":" //; exec node -- "$0" "$@"
/* `strongroom terraform-credentials` under the name by which Terraform and OpenTofu look for it; see strongroom.cjs. */
process.argv.splice(2, 0, "terraform-credentials");
require("./strongroom.cjs");
