//go:build integration

package manual

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// inNames are words before a command that let it resolve the names of the chapter on TLS: a file of hosts of its own.
func inNames(t *testing.T) []string {
	t.Helper()
	hosts := filepath.Join(t.TempDir(), "hosts")
	text := "127.0.0.1 localhost\n127.0.0.11 node1.example.com\n127.0.0.12 node2.example.com\n"
	expect.NoError(t, os.WriteFile(hosts, []byte(text), 0o644))
	return []string{"unshare", "--mount", "sh", "-c", "mount --bind " + hosts + " /etc/hosts && exec \"$@\"", "sh"}
}

// walk runs the commands of the chapter on TLS in one directory.
type walk struct {
	t        *testing.T
	dir, bin string
	prefix   []string
	here     *strings.Replacer
}

// run runs commands in bash, and returns what they print, whatever their exit code is.
func (w *walk) run(commands string) (out string, err error) {
	w.t.Helper()
	cmd := exec.Command(w.prefix[0], append(w.prefix[1:], "bash", "-e", "-o", "pipefail", "-c", w.here.Replace(commands))...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "SEQUINS_SETTLE=0s", "PATH="+w.bin+":"+os.Getenv("PATH"))
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// fails runs a command that fails with a text, which the chapter has.
func (w *walk) fails(command, text string) {
	w.t.Helper()
	out, err := w.run(command)
	if err == nil || !strings.Contains(out, text) {
		w.t.Errorf("%s: %v\n%s\nwant %q", command, err, out, text)
	}
	w.lists(text)
}

// lists checks that the tables of the chapter have a text; … stands for anything.
func (w *walk) lists(text string) {
	w.t.Helper()
	_, tables, _ := strings.Cut(chapter(w.t, "SECURITY.md", "TLS"), "\n### What errors mean\n")
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(tables, -1) {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(m[1]), "…", ".*")
		if regexp.MustCompile(pattern).MatchString(text) {
			return
		}
	}
	w.t.Errorf("SECURITY.md does not list %q", text)
}

// The chapter on TLS makes certificates that nodes and clients use, its commands succeed, and its errors are those that one sees.
func TestTLS(t *testing.T) {
	_, port, err := net.SplitHostPort(process.FreeAddr(t))
	expect.NoError(t, err)
	w := &walk{t: t, dir: t.TempDir(), bin: t.TempDir(), prefix: inNames(t), here: strings.NewReplacer(":9599", ":"+port)}
	expect.NoError(t, os.Symlink(process.Binary(t), filepath.Join(w.bin, "sequins")))
	var sh []string
	toml := ""
	for _, b := range Blocks(chapter(t, "SECURITY.md", "TLS")) {
		switch b.Language {
		case "sh":
			sh = append(sh, b.Text)
		case "toml":
			toml = b.Text
		}
	}
	if len(sh) != 6 || toml == "" {
		t.Fatalf("%d blocks of commands", len(sh))
	}
	for _, commands := range sh[:3] { // authority, nodes, client
		if out, err := w.run(commands); err != nil {
			t.Fatalf("%v\n%s\n%s", err, commands, out)
		}
	}
	conf := func(node, changes string) process.Config {
		sections := strings.NewReplacer("/etc/sequins/node", filepath.Join(w.dir, node), "/etc/sequins/", w.dir+"/").Replace(toml)
		return process.Config{Source: filepath.Join(process.Root(), "docs", "example"), Store: filepath.Join(t.TempDir(), "store"), Prefix: w.prefix, Sections: sections + changes}
	}
	c := conf("node1.example.com", "")
	c.Addr = "127.0.0.11:" + port
	n := process.Launch(t, c)
	n.WaitLog(t, "msg=\"version active\"")
	for _, commands := range sh[3:4] {
		if out, err := w.run(commands); err != nil || !strings.Contains(out, "Serving 1 database.") || !strings.Contains(out, "a fruit") {
			t.Errorf("%v\n%s", err, out)
		}
	}

	const url, own = "https://node1.example.com:9599", " --certificate web.pem --certificate-key web.key"
	w.fails("sequins status --server "+url+own, "has a certificate that cannot be used: x509: certificate signed by unknown authority")
	w.fails("sequins status --server "+url+" --ca ca.pem", "refuses the TLS connection (tls: certificate required)")
	w.fails("sequins status --server https://127.0.0.11:9599 --ca ca.pem"+own, "x509: cannot validate certificate for 127.0.0.11")
	w.fails("sequins status --server node1.example.com:9599", " speaks TLS: use https://")
	w.fails("curl -sS --cert web.pem --key web.key "+url+"/words/apple", "unable to get local issuer certificate")
	w.fails("curl -sS --cacert ca.pem "+url+"/words/apple", "alert certificate required")
	for command, text := range map[string]string{
		"sequins status --server " + url + own:            `msg="a TLS handshake has failed" client=127.0.0.1:[0-9]+ error="remote error: tls: bad certificate"`,
		"sequins status --server " + url + " --ca ca.pem": `msg="a TLS handshake has failed" client=127.0.0.1:[0-9]+ error="tls: client didn't provide a certificate"`,
	} {
		n.WaitFor(t, "the log says "+text, func() bool {
			_, _ = w.run(command)                                // it fails
			return regexp.MustCompile(text).MatchString(n.Log()) // which has at most one such line a second
		})
	}
	w.lists("remote error: tls: bad certificate")
	w.lists("tls: client didn't provide a certificate")
	w.rotate(n, sh[4], sh[5])
	w.refused(conf)
}

// rotate replaces a certificate: the node shows another one, without a restart.
func (w *walk) rotate(n *process.Node, replace, show string) {
	w.t.Helper()
	before, err := w.run(show)
	if err != nil || !strings.Contains(before, "serial=") || !strings.Contains(before, "notAfter=") {
		w.t.Fatalf("%v\n%s", err, before)
	}
	if out, err := w.run(replace); err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
	n.WaitFor(w.t, "the node shows the new certificate", func() bool {
		after, err := w.run(show)
		return err == nil && strings.Contains(after, "serial=") && after != before
	})
	n.WaitLog(w.t, "the certificates have changed, and are used from now on")
}

// refused starts nodes of a cluster with certificates that others would refuse: they say why.
func (w *walk) refused(conf func(node, changes string) process.Config) {
	w.t.Helper()
	make := func(name, extensions, days string) string {
		return fmt.Sprintf("printf '%%s\\n' %s > %[2]s.ext; cp node1.example.com.key %[2]s.key; "+
			"openssl x509 -req -in node1.example.com.csr -CA ca.pem -CAkey ca.key %[3]s -extfile %[2]s.ext -out %[2]s.pem", extensions, name, days)
	}
	for name, test := range map[string]struct{ commands, text string }{
		"otherkey":  {"cp node2.example.com.pem otherkey.pem; cp node1.example.com.key otherkey.key", "private key does not match public key"},
		"othername": {"cp node2.example.com.pem othername.pem; cp node2.example.com.key othername.key", "certificate is valid for node2.example.com, not node1.example.com"},
		"noname":    {make("noname", "extendedKeyUsage=serverAuth,clientAuth", "-days 1"), "certificate relies on legacy Common Name field, use SANs instead"},
		"server":    {make("server", "subjectAltName=DNS:node1.example.com extendedKeyUsage=serverAuth", "-days 1"), "certificate specifies an incompatible key usage"},
		"client":    {make("client", "subjectAltName=DNS:node1.example.com extendedKeyUsage=clientAuth", "-days 1"), "certificate specifies an incompatible key usage"},
		"der":       {"openssl x509 -in node1.example.com.pem -outform DER -out ca.der; cp node1.example.com.pem der.pem; cp node1.example.com.key der.key", "there is no PEM certificate in " + w.dir + "/ca.der"},
		"foreign": {"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj /CN=x -addext subjectAltName=DNS:node1.example.com -keyout foreign.key -out foreign.pem",
			"certificate signed by unknown authority"},
		"old": {make("old", "subjectAltName=DNS:node1.example.com extendedKeyUsage=serverAuth,clientAuth", "-days -1"), "certificate has expired or is not yet valid"},
	} {
		if out, err := w.run(test.commands); err != nil {
			w.t.Fatalf("%s: %v\n%s", name, err, out)
		}
		c := conf(name, "[sharding]\nenabled = true\nadvertised_hostname = \"node1.example.com\"\n[zk]\nservers = [\"127.0.0.1:1\"]\n")
		if name == "der" {
			c.Sections = strings.ReplaceAll(c.Sections, "/ca.pem", "/ca.der")
		}
		n := process.Launch(w.t, c)
		if code := n.WaitExit(w.t); code == 0 || !strings.Contains(n.Log(), test.text) {
			w.t.Errorf("%s: exit code %d\n%s\nwant %q", name, code, n.Log(), test.text)
		}
		w.lists(test.text)
	}
}
