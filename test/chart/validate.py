"""Validates objects as the API server of Kubernetes does: validate.py VERSIONS CRDS FILE...

Objects of Kubernetes are checked against the schemas of each of the versions (1.27,1.37), strictly: an unknown field is an
error. Others are checked against the schemas of the CustomResourceDefinitions in the files of a comma-separated list.
"""

import sys

import jsonschema
import kubernetes_validate
import yaml


def strict(schema):
    """A schema of a CRD that refuses what the API server would drop with a warning."""
    if isinstance(schema, list):
        return [strict(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {k: strict(v) for k, v in schema.items()}
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        out.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        out["type"] = ["integer", "string"]
        out.pop("anyOf", None)
    if str(out.get("pattern", "")).startswith("^(?i)"):  # Python wants flags first
        out["pattern"] = "(?i)^" + out["pattern"].removeprefix("^(?i)")
    return out


def definitions(files):
    """The schemas of the CRDs, by apiVersion and kind."""
    found = {}
    for file in files:
        with open(file) as f:
            crd = yaml.safe_load(f)
        for version in crd["spec"]["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"type": "object"}
            found[crd["spec"]["group"] + "/" + version["name"], crd["spec"]["names"]["kind"]] = schema
    return found


def main(versions, crds, files):
    custom = definitions(crds.split(","))
    seen, failed = set(), False
    for file in files:
        with open(file) as f:
            objects = [o for o in yaml.safe_load_all(f) if o]
        for o in objects:
            key = o["apiVersion"], o["kind"]
            try:
                if key in custom:
                    jsonschema.validate(o, custom[key])
                else:
                    for version in versions.split(","):
                        kubernetes_validate.validate(o, version, strict=True)
                seen.add(o["kind"])
            except Exception as e:
                failed = True
                where = ".".join(str(p) for p in getattr(e, "absolute_path", []))
                print(f"{file}: {o['kind']}/{o['metadata']['name']}: {where}: {getattr(e, 'message', e)}")
    print("kinds:", *sorted(seen))
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
