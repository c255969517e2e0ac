//go:build integration

package hdfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"

	"sequins/source"
	"sequins/source/hdfs"
	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

// A realm is a cluster that wants Kerberos, and its KDC.
type realm struct {
	*harness.Harness
	kdc       map[string]string // its description by the harness
	conf, url string
}

func startRealm(t *testing.T, options string) realm {
	t.Helper()
	h := harness.Start(t)
	k := realm{Harness: h, kdc: h.Do(t, "kdc start")}
	r := h.Do(t, "dfs start secure "+options)
	k.conf = r["conf"]
	k.url = "hdfs://" + strings.Replace(r["nn"], "127.0.0.1", "localhost", 1) + "/jobs"
	h.Do(t, "job out="+k.url+"/db/1 records=1000 reducers=2")
	return k
}

// open makes a source that has the right keytab, unless it is changed.
func (k realm) open(t *testing.T, change func(*hdfs.Options)) *hdfs.Source {
	t.Helper()
	t.Setenv("KRB5_CONFIG", k.kdc["krb5conf"])
	o := hdfs.Options{URL: k.url, ConfigDir: k.conf, Principal: k.kdc["principal"], Keytab: k.kdc["keytab"],
		Timeout: 5 * time.Second, RetryFor: 10 * time.Second}
	if change != nil {
		change(&o)
	}
	s, err := hdfs.New(o)
	expect.NoError(t, err)
	return s
}

// with returns a copy of the configuration with another value of a property.
func (k realm) with(t *testing.T, name, value string) string {
	t.Helper()
	dir := t.TempDir()
	expect.NoError(t, os.CopyFS(dir, os.DirFS(k.conf)))
	site := filepath.Join(dir, "hdfs-site.xml")
	b, err := os.ReadFile(site)
	expect.NoError(t, err)
	property := fmt.Sprintf("<property><name>%s</name><value>%s</value></property></configuration>", name, value)
	expect.NoError(t, os.WriteFile(site, []byte(strings.Replace(string(b), "</configuration>", property, 1)), 0o600))
	return dir
}

// configure describes a node that reads the jobs' output.
func (k realm) configure(t *testing.T, keytab string) process.Config {
	t.Helper()
	t.Setenv("KRB5_CONFIG", k.kdc["krb5conf"])
	return configure(t, k.url, fmt.Sprintf("config_dir = %q\nprincipal = %q\nkeytab = %q\n", k.conf, k.kdc["principal"], keytab))
}

// wantJob loads the output of the job.
func wantJob(t *testing.T, s *hdfs.Source) {
	t.Helper()
	l := dataset{}.load(t, s, 1<<30)
	expect.NoError(t, <-l.done)
	if p := l.progress.Snapshot(); p.Records != 1000 {
		t.Errorf("%d records, want 1000", p.Records)
	}
}

func TestKerberos(t *testing.T) {
	k := startRealm(t, "protection=authentication")
	t.Run("keytab", func(t *testing.T) { wantJob(t, k.open(t, nil)) })
	t.Run("credential cache", func(t *testing.T) {
		cache := filepath.Join(t.TempDir(), "cache")
		k.kinit(t, cache)
		t.Setenv("KRB5CCNAME", cache)
		wantJob(t, k.open(t, func(o *hdfs.Options) { o.Principal, o.Keytab = "", "" }))
	})
	t.Run("a node with a keytab", func(t *testing.T) {
		process.Start(t, k.configure(t, k.kdc["keytab"])).WaitCurrent(t, "db", "1")
	})
	t.Run("a node with the wrong one", func(t *testing.T) {
		n := process.Start(t, k.configure(t, wrongKeytab(t, k.kdc["principal"])))
		n.WaitLog(t, "Kerberos refuses "+k.kdc["principal"])
		if r := n.Get(t, "/db/key-000000000"); r.Code != 503 {
			t.Errorf("it answers %d", r.Code)
		}
	})
	for name, tt := range map[string]struct {
		change func(o *hdfs.Options)
		says   []string
	}{
		"the keys of somebody else": {func(o *hdfs.Options) { o.Keytab = wrongKeytab(t, k.kdc["principal"]) },
			[]string{"Kerberos refuses " + k.kdc["principal"] + " with the keytab /", "PREAUTH_FAILED"}},
		"no such principal": {func(o *hdfs.Options) { o.Principal = "nobody" },
			[]string{"Kerberos refuses nobody with the keytab " + k.kdc["keytab"], "KDC_ERR_C_PRINCIPAL_UNKNOWN"}},
		"no such service": {func(o *hdfs.Options) { o.ConfigDir = k.with(t, "dfs.namenode.kerberos.principal", "nn/_HOST") }, []string{"nn/localhost", "KDC_ERR_S_PRINCIPAL_UNKNOWN"}},
		"no Kerberos": {func(o *hdfs.Options) { o.Principal, o.Keytab, o.ConfigDir = "", "", "" },
			[]string{"SIMPLE authentication is not enabled"}},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := source.Databases(t.Context(), k.open(t, func(o *hdfs.Options) {
				o.RetryFor = time.Hour // as nothing of this passes, it is of no use
				tt.change(o)
			}))
			if !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%v is not fs.ErrPermission", err)
			}
			says(t, err, append(tt.says, "list "+k.url)...)
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %v to find out", took)
			}
		})
	}
	t.Run("a keytab that is put right", func(t *testing.T) {
		path := wrongKeytab(t, k.kdc["principal"])
		s := k.open(t, func(o *hdfs.Options) { o.Keytab = path })
		if _, err := source.Databases(t.Context(), s); err == nil {
			t.Error("the wrong keytab is accepted")
		}
		b, err := os.ReadFile(k.kdc["keytab"])
		expect.NoError(t, err)
		expect.NoError(t, os.WriteFile(path, b, 0o600))
		wantJob(t, s)
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)); err != nil { // as if there were new keys
			t.Fatal(err)
		}
		wantJob(t, s)
	})
	t.Run("more protection than there is", func(t *testing.T) {
		f, err := k.open(t, func(o *hdfs.Options) { o.ConfigDir = k.with(t, "dfs.data.transfer.protection", "privacy") }).Open(t.Context(), "db", "1", source.File{Name: "part-r-00000"}, source.ReadOptions{})
		expect.NoError(t, err)
		defer f.Close()
		_, err = io.ReadAll(f)
		says(t, err, "invalid qop: [auth]", "AES/CTR/NoPadding")
	})
}

// TestPrivacy: calls and data are encrypted.
func TestPrivacy(t *testing.T) {
	k := startRealm(t, "protection=privacy dfs.encrypt.data.transfer.cipher.suites=AES/CTR/NoPadding")
	wantJob(t, k.open(t, nil))
}

// wrongKeytab writes the keys of a principal for another password.
func wrongKeytab(t *testing.T, principal string) string {
	t.Helper()
	name, realm, _ := strings.Cut(principal, "@")
	keys := keytab.New()
	for _, etype := range []int32{etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.DES3_CBC_SHA1_KD, etypeID.RC4_HMAC} {
		expect.NoError(t, keys.AddEntry(name, realm, "not the password", time.Now(), 1, etype))
	}
	b, err := keys.Marshal()
	expect.NoError(t, err)
	path := filepath.Join(t.TempDir(), "keytab")
	expect.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// kinit logs in and leaves a credential cache of format 4:
// https://web.mit.edu/kerberos/krb5-latest/doc/formats/ccache_file_format.html.
func (k realm) kinit(t *testing.T, path string) {
	t.Helper()
	conf, err := config.Load(k.kdc["krb5conf"])
	expect.NoError(t, err)
	keys, err := keytab.Load(k.kdc["keytab"])
	expect.NoError(t, err)
	name, realm, _ := strings.Cut(k.kdc["principal"], "@")
	client := krb.NewWithKeytab(name, realm, keys, conf)
	request, err := messages.NewASReqForTGT(realm, conf, client.Credentials.CName())
	expect.NoError(t, err)
	answer, err := client.ASExchange(realm, request, 0)
	expect.NoError(t, err)
	ticket, err := answer.Ticket.Marshal()
	expect.NoError(t, err)
	d := answer.DecryptedEncPart
	me := principal(1, realm, name)
	b := append([]byte{5, 4, 0, 0}, me...)
	b = append(append(b, me...), principal(2, realm, "krbtgt", realm)...)
	b = binary.BigEndian.AppendUint16(b, uint16(d.Key.KeyType))
	b = counted(b, d.Key.KeyValue)
	for _, at := range []time.Time{d.AuthTime, d.AuthTime, d.EndTime, d.AuthTime} {
		b = binary.BigEndian.AppendUint32(b, uint32(at.Unix()))
	}
	b = append(b, 0)                      // the key is not of another ticket
	b = append(b, 0, 0, 0, 0)             // no flags
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // no addresses, no authorisation data
	b = counted(counted(b, ticket), nil)  // no second ticket
	expect.NoError(t, os.WriteFile(path, b, 0o600))
}

func principal(kind uint32, realm string, parts ...string) []byte {
	b := binary.BigEndian.AppendUint32(nil, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(parts)))
	b = counted(b, []byte(realm))
	for _, p := range parts {
		b = counted(b, []byte(p))
	}
	return b
}

func counted(b, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(data))), data...)
}
