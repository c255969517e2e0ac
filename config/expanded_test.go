package config

import (
	"fmt"
	"strings"
	"testing"
)

// Problems and warnings name the variable that a value came from and do not show what is in it.
func TestProblemsDoNotShowVariables(t *testing.T) {
	for doc, want := range map[string]string{
		`refresh_period = "${PW}"`:                         `refresh_period: "${PW}" is not a duration such as "10m" or "800us"`,
		`[load]` + "\n" + `memory = "${PW}"`:               `load.memory: "${PW}" is not a size such as "256MiB"`,
		`max_parallel_loads = "${PW}"`:                     `max_parallel_loads: must be an integer, not a string`,
		`keep_versions = "${N}"`:                           `keep_versions: must be at least 1, not ${N}`,
		`partitioner = "${PW}"`:                            `partitioner: "${PW}" is none of auto, string, hadoop, spark, cascading`,
		`local_store = "x/${PW}/y"`:                        `local_store: "x/${PW}/y" is not an absolute path`,
		`bind = "${NONE:-x}"`:                              `bind: "${NONE:-x}" is not an address of the form host:port`,
		`http.cache_control = "no-store, max-age: ${PW}"`:  `http.cache_control: "no-store, max-age: ${PW}" is not a directive`,
		`http.allowed_origins = ["http://a", "${PW}"]`:     `http.allowed_origins: "${PW}" is not an origin`,
		`http.allowed_origins = ["https://${PW}/"]`:        `http.allowed_origins: browsers never send "https://${PW}/" as an origin, but "…"`,
		`gate.required_keys = { a = "(${PW}" }`:            "gate.required_keys.a: is not a regular expression: error parsing regexp: missing closing ): \"(${PW}\"",
		`load.window = "${PW}"`:                            `load.window: `,
		`db.x.partitioner = "${PW}"`:                       `db.x.partitioner: "${PW}" is none of auto`,
		"bind = \":1\"\nredis.bind = \"${BIND}\"":          `redis.bind: "${BIND}" is the address of bind too`,
		`tracing.otlp_endpoint = "http://u:${PW}@h:4318x"`: `tracing.otlp_endpoint: "http://***@h:4318x" is not a URL of the form http://host:port`,
	} {
		_, _, err := fromEnvironment("source = \"/d\"\n"+doc, "PW=hunter2", "N=-5", "BIND=:1")
		got := report(err)
		_, got, _ = strings.Cut(got, ": ")
		if !strings.HasPrefix(got, want) || strings.Contains(got, "hunter2") || strings.Contains(got, "\n") {
			t.Errorf("%s\ngot  %s\nwant %s", doc, got, want)
		}
	}
}

// No key shows what is in a variable, whatever that is.
func TestNoKeyShowsVariables(t *testing.T) {
	values := []string{
		"hunter2", "http://u:hunter2@h:1x", "http://h/?sig=hunter2", "ftp://hunter2", "hunter2 5MiB/s", "hunter2%zz://", "(hunter2`", "u:hunter2@h:70000",
		"mon hunter2-06:00", "Max-Age=HUNTER2, x", "\x01hunter2\"x", "hunter2/v1/traces", "https://*.hunter2.example", "HTTP://HUNTER2:080", "{ a = \"hunter2\", b = hunter2 }",
	}
	for _, value := range values {
		for _, form := range []string{`"${PW}"`, `["${PW}", "x${PW}"]`, `{ a = "x${PW}" }`, `"http://u:${PW}@h:1/?a=${PW}"`, `"é${PW}"`} {
			var doc strings.Builder
			for _, k := range Keys() {
				fmt.Fprintf(&doc, "%s = %s\n", strings.Replace(k.Name, "<name>", "x", 1), form)
			}
			_, d, err := parse("s.conf", []byte(doc.String()), []string{"PW=" + value}, nil)
			if err == nil || len(d.problems) < 10 {
				t.Errorf("%s, %q: %v", form, value, err)
			}
			for _, p := range append(d.problems, d.warnings...) {
				if strings.Contains(strings.ToLower(p.Error()), "hunter2") {
					t.Errorf("%s, %q: %v", form, value, p)
				}
			}
		}
	}
}

// Problems of values that may be passwords or URLs with one do not show these.
func TestProblemsDoNotShowSecrets(t *testing.T) {
	for doc, want := range map[string]string{
		`tracing.otlp_endpoint = "http://user:hunter2@host:4318x"`:             `"http://***@host:4318x" is not a URL`,
		`tracing.otlp_endpoint = "http://user:hunter2@host/v1/traces"`:         `"http://***@host/v1/traces" ends with`,
		`tracing.otlp_endpoint = "http://user:hunter2@host"`:                   `has more than host, port and path`,
		`s3.endpoint = "http://u:hunter2@h"`:                                   `has more than host, port and path`,
		`s3.endpoint = "u:hunter2@h"`:                                          `"***@h" is not a URL`,
		`s3.endpoint = "http://u:hun/ter2@h"`:                                  `"http://***@h" is not a URL`,
		`azure.endpoint = "https://a.blob.core.windows.net/?sv=1&sig=hunter2"`: `has more than host, port and path`,
		`azure.endpoint = "https://a.blob.core.windows.net/?"`:                 `has more than host, port and path`,
		`azure.endpoint = "https://a:hunter2@h"`:                               `has more than host, port and path`,
		`zk.servers = ["u:hunter2@h:1"]`:                                       `"***@h:1" is not an address`,
		`datadog.url = "http://u:hunter2@x"`:                                   `"http://***@x" is not an address`,
		`http.allowed_origins = ["http://a:hunter2@b"]`:                        `"http://***@b" is not an origin`,
		`bind = "u:hunter2@h"`:                                                 `"***@h" has no valid port`,
		`events.secret = 72637`:                                                `must be a string, not a value of another type`,
		`Azure.Account_Key = 72637`:                                            `must be a string, not a value of another type`,
		`source = "abfss://c@a.dfs.core.windows.net/p?sig=hunter2%zz&x="`:      `has more than a container`,
		`source = "s3://u:hunter2@b:x/"`:                                       `"s3://***@b:x/" is not a valid URL`,
		`source = "u:hunter2@b"`:                                               `"***@b" is not an absolute path`,
	} {
		head := "source = \"/d\"\n"
		if strings.HasPrefix(doc, "source") {
			head = ""
		}
		_, _, err := load(head + doc)
		if got := report(err); !strings.Contains(got, ": "+want) || strings.Contains(got, "ter2") || strings.Contains(got, "72637") {
			t.Errorf("%s\ngot  %s\nwant %s", doc, got, want)
		}
	}
}
