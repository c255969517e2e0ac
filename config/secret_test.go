package config_test

import (
	"strings"
	"testing"

	"sequins/config"
)

// A cluster with tokens needs a secret, and one that can be sent.
func TestSecret(t *testing.T) {
	good := strings.Repeat("aZ9=", 4)
	for name, test := range map[string]struct {
		secret, file, tokens string
		want                 string
	}{
		"none":                {want: ""},
		"one":                 {secret: good, want: ""},
		"file":                {file: "/x", tokens: "/y", want: ""},
		"tokens with it":      {secret: good, tokens: "/y", want: ""},
		"tokens without it":   {tokens: "/y", want: "sharding.secret: is not set"},
		"both":                {secret: good, file: "/x", want: "sharding.secret_file: is set, and so is secret"},
		"short":               {secret: "short", want: "sharding.secret: is not 16 to 512"},
		"that is two headers": {secret: good + "\r\nX: y", want: "sharding.secret: is not 16 to 512"},
	} {
		c := config.Default()
		c.Source, c.Sharding.Enabled = "/srv", true
		c.Sharding.Secret, c.Sharding.SecretFile, c.Auth.TokensFile = test.secret, test.file, test.tokens
		err := c.Validate()
		if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || test.secret != "" && strings.Contains(err.Error(), test.secret)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
