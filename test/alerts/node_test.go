//go:build integration

package alerts

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sequins/test/gateway"
	"sequins/test/process"
)

// start starts a node that serves version 1, and has it watched.
func (s *scene) start(extra string) *process.Node {
	s.Helper()
	s.write("1")
	n := process.Serve(s, s.config(extra), s.name, "1")
	s.watch(n)
	return n
}

// damagedFile: a new version has a file that was cut short, beside one that is good; and a new database has nothing else.
func damagedFile(s *scene) {
	n := s.start(polling)
	alone := map[string]string{"instance": n.Debug, "db": s.name + "-alone"}
	s.quiet("SequinsVersionFailed", s.of(n))
	s.quiet("SequinsNotServing", alone)
	part := filepath.Join(s.source(), s.name, "1", "part-r-00000")
	whole, err := os.ReadFile(part)
	if err != nil {
		s.Fatal(err)
	}
	for _, db := range []string{s.name, s.name + "-alone"} {
		dir := filepath.Join(s.source(), db, "2")
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "part-r-00000"), whole[:len(whole)-5], 0o644)); err != nil {
			s.Fatal(err)
		}
	}
	s.fires("SequinsVersionFailed", s.of(n))
	s.leads("SequinsVersionFailed", "The reason is in `sequins status`", s.run("status", "--server", n.Addr), "part-r-00000", "offset")
	s.leads("SequinsVersionFailed", "and in the log", n.Log(), "part-r-00000", "offset")
	s.leads("SequinsVersionFailed", "`sequins verify FILE` on a copy says the same", s.run("verify", filepath.Join(s.source(), s.name, "2", "part-r-00000")), "part-r-00000", "offset")
	s.fires("SequinsNotServing", alone)
	s.leads("SequinsNotServing", "`sequins status` says which version it tries", s.run("status", "--server", n.Addr), "files-alone  2", "part-r-00000: corrupt SequenceFile at offset") // ERROR, or being tried again

	for _, db := range []string{s.name, s.name + "-alone"} { // the job runs again, into another version
		if err := os.CopyFS(filepath.Join(s.source(), db, "3"), os.DirFS(filepath.Join(s.source(), s.name, "1"))); err != nil {
			s.Fatal(err)
		}
	}
	s.quiet("SequinsNotServing", alone)
	s.quiet("SequinsVersionFailed", s.of(n))
}

// heldVersion: a version has half of the records.
func heldVersion(s *scene) {
	s.write("1")
	c := s.config(polling)
	c.Sections = "[gate]\nmax_shrink = 0.2\n"
	n := process.Start(s, c)
	s.watch(n)
	n.WaitCurrent(s, s.name, "1")
	s.quiet("SequinsVersionHeld", s.of(n))
	s.writeSome("2", records/2)
	s.fires("SequinsVersionHeld", s.of(n))
	s.leads("SequinsVersionHeld", "`sequins status` says", s.run("status", "--server", n.Addr), "HELD", "records instead of")
	s.leads("SequinsVersionHeld", "in the log", n.Log(), "version held", "max_shrink")
	s.write("3")
	n.WaitCurrent(s, s.name, "3")
	s.quiet("SequinsVersionHeld", s.of(n))
}

// sourceHangs: in the middle of a load, S3 says nothing any more.
func sourceHangs(s *scene) {
	g := gateway.Start(s)
	noise := rand.New(rand.NewPCG(1, 1))
	file := filepath.Join(s.dir, "part-r-00000")
	s.writeFile(file, func(int) string {
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = byte(noise.Uint32())
		}
		return string(b)
	}, 0, 1, 96)
	if err := g.PutFile(s.Context(), s.name+"/1/part-r-00000", file); err != nil {
		s.Fatal(err)
	}
	c := s.config("max_download_bandwidth_mb_per_second = 1")
	c.Source = "s3://" + gateway.Bucket
	c.Sections = fmt.Sprintf("[s3]\nregion = %q\nendpoint = %q\npath_style = true\naccess_key_id = %q\nsecret_access_key = %q\n",
		gateway.Region, g.Endpoint(), gateway.AccessKey, gateway.SecretKey)
	n := process.Start(s, c)
	s.watch(n)
	read := func() float64 { return s.value(n, `sequins_load_bytes_total{db="stuck"}`) }
	n.WaitFor(s, "the load has read something", func() bool { return read() > 0 })
	s.quiet("SequinsLoadStuck", s.of(n))
	before := read()
	n.WaitFor(s, "the load goes on", func() bool { return read() > before })
	s.quiet("SequinsLoadStuck", s.of(n))
	g.Freeze(s)
	s.fires("SequinsLoadStuck", s.of(n))
	s.leads("SequinsLoadStuck", "`sequins status` shows how far it is", s.run("status", "--server", n.Addr), "BUILDING")
	g.Thaw(s)
	s.quiet("SequinsLoadStuck", s.of(n))
}

// oldData: somebody copies the output of three days ago, with its times, into a new version.
func oldData(s *scene) {
	n := s.start(polling)
	s.quiet("SequinsDataOld", s.of(n))
	s.write("tmp")
	past := time.Now().Add(-72 * time.Hour)
	for i := range files {
		if err := os.Chtimes(filepath.Join(s.source(), s.name, "tmp", fmt.Sprintf("part-r-%05d", i)), past, past); err != nil {
			s.Fatal(err)
		}
	}
	n.WaitCurrent(s, s.name, "tmp")
	s.fires("SequinsDataOld", s.of(n))
	s.leads("SequinsDataOld", "`sequins versions` shows what the source has", s.run("versions", "--source", s.source()), "tmp")
	s.write("zzz")
	s.quiet("SequinsDataOld", s.of(n))
}

// oneIsBehind: of two nodes one has not been told to look for the new version.
func oneIsBehind(s *scene) {
	a := s.start("")
	b := process.Serve(s, s.config(""), s.name, "1")
	s.watch(a, b)
	s.quiet("SequinsVersionsDiffer", s.of(nil))
	s.write("2")
	a.Signal(s, syscall.SIGHUP)
	a.WaitCurrent(s, s.name, "2")
	s.fires("SequinsVersionsDiffer", s.of(nil))
	s.leads("SequinsVersionsDiffer", "count by (db, version) (sequins_version_info)", a.Metrics(s)+b.Metrics(s),
		`sequins_version_info{db="behind",version="1"} 1`, `sequins_version_info{db="behind",version="2"} 1`)
	b.Signal(s, syscall.SIGHUP)
	s.quiet("SequinsVersionsDiffer", s.of(nil))
}

// sourceGone: the source's directory is not there any more.
func sourceGone(s *scene) {
	n := s.start(polling)
	s.quiet("SequinsSourceUnreachable", at(n))
	away := s.source() + ".away"
	if err := os.Rename(s.source(), away); err != nil {
		s.Fatal(err)
	}
	s.fires("SequinsSourceUnreachable", at(n))
	s.leads("SequinsSourceUnreachable", "The reason is in `sequins status`", s.run("status", "--server", n.Addr), "no such file or directory")
	s.leads("SequinsSourceUnreachable", "in the log", n.Log(), "no such file or directory")
	s.leads("SequinsSourceUnreachable", "Serving goes on", s.codes(n), "200")
	if err := os.Rename(away, s.source()); err != nil {
		s.Fatal(err)
	}
	s.quiet("SequinsSourceUnreachable", at(n))
}

// diskFull: somebody else fills the disk of the store.
func diskFull(s *scene) {
	c := s.config(polling)
	if err := os.MkdirAll(c.Store, 0o755); err != nil {
		s.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", c.Store, "tmpfs", 0, "size=4m"); err != nil {
		s.Fatalf("mounting a small tmpfs (this test must run as root): %v", err)
	}
	s.Cleanup(func() {
		if err := syscall.Unmount(c.Store, syscall.MNT_DETACH); err != nil {
			s.Error(err)
		}
	})
	s.write("1")
	n := process.Serve(s, c, s.name, "1")
	s.watch(n)
	s.quiet("SequinsDiskFull", at(n))
	ballast := filepath.Join(c.Store, "ballast")
	err := os.WriteFile(ballast, make([]byte, 5<<20), 0o644)
	if !errors.Is(err, syscall.ENOSPC) {
		s.Fatalf("writing more than there is room for: %v", err)
	}
	s.fires("SequinsDiskFull", at(n))
	s.leads("SequinsDiskFull", "`sequins_version_bytes` says what each database takes", n.Metrics(s), `sequins_version_bytes{db="full"}`)
	if err := os.Remove(ballast); err != nil {
		s.Fatal(err)
	}
	s.quiet("SequinsDiskFull", at(n))
}

// block is the path of the first block of version 1.
func (s *scene) block(c process.Config) string {
	found, err := filepath.Glob(filepath.Join(c.Store, "data", s.name, "1", "*", "00000.block"))
	if err != nil || len(found) != 1 {
		s.Fatalf("blocks: %v, %v", found, err)
	}
	return found[0]
}

// damagedBlock: bytes of a block have changed on the disk. One request meets them, and the block is loaded again.
func damagedBlock(s *scene) {
	s.write("1")
	c := s.config("")
	n := process.Serve(s, c, s.name, "1")
	s.watch(n)
	s.quiet("SequinsChecksumFailures", s.of(n))
	block := s.block(c)
	flip(s, block)
	s.leads("SequinsChecksumFailures", "`sequins verify /var/lib/sequins` reads everything", s.run("verify", c.Store), block, "offset 0")
	n.WaitFor(s, "a request meets the damage", func() bool { return strings.Contains(s.codes(n), "500") })
	n.WaitFor(s, "the block is loaded again", func() bool { return !strings.Contains(s.codes(n), "500") })
	s.fires("SequinsChecksumFailures", s.of(n))
	s.leads("SequinsChecksumFailures", `grep -i "damaged"`, n.Log(), "a block is damaged", block, "page 0 at offset 0")
	aside, err := filepath.Glob(block + ".corrupt")
	if err != nil || len(aside) != 1 {
		s.Errorf("set aside: %q, %v", aside, err)
	}
	s.quiet("SequinsChecksumFailures", s.of(n)) // after a while without another
}

// unreadableBlock: the same, and it cannot be loaded again, as the source is away.
func unreadableBlock(s *scene) {
	s.write("1")
	c := s.config("")
	n := process.Serve(s, c, s.name, "1")
	s.watch(n)
	s.quiet("SequinsErrors", s.of(n))
	away := s.source() + ".away"
	if err := os.Rename(s.source(), away); err != nil {
		s.Fatal(err)
	}
	block := s.block(c)
	flip(s, block)
	s.ask(n) // only now, as pages of so small a block are kept in memory once they have been read
	s.fires("SequinsErrors", s.of(n))
	s.leads("SequinsErrors", "500: a block cannot be read", s.codes(n), "500")
	s.leads("SequinsErrors", `grep "reading a block"`, n.Log(), "reading a block", block)
	if err := os.Rename(away, s.source()); err != nil {
		s.Fatal(err)
	}
	n.Signal(s, syscall.SIGHUP)
	s.quiet("SequinsErrors", s.of(n))
}

// flip changes bytes of a block's first page.
func flip(s *scene, path string) {
	s.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		s.Fatal(err)
	}
	b := make([]byte, 16)
	_, err = f.ReadAt(b, 8)
	for i := range b {
		b[i] ^= 0x55
	}
	_, werr := f.WriteAt(b, 8)
	if err := errors.Join(err, werr, f.Close()); err != nil {
		s.Fatal(err)
	}
}

// badConfiguration: a key is misspelt, and SIGHUP sent.
func badConfiguration(s *scene) {
	n := s.start("")
	s.quiet("SequinsReloadFailed", at(n))
	good, err := os.ReadFile(n.Conf)
	if err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(n.Conf, append([]byte("refresh_perod = \"1s\"\n"), good...), 0o644); err != nil {
		s.Fatal(err)
	}
	n.Signal(s, syscall.SIGHUP)
	s.fires("SequinsReloadFailed", at(n))
	s.leads("SequinsReloadFailed", "as `sequins check-config` does", s.run("check-config", n.Conf), ":1:", "refresh_perod")
	if err := os.WriteFile(n.Conf, good, 0o644); err != nil {
		s.Fatal(err)
	}
	n.Signal(s, syscall.SIGHUP)
	s.quiet("SequinsReloadFailed", at(n))
}

// manyConnections: clients do not close theirs, and there may be fewer than usual.
func manyConnections(s *scene) {
	s.write("1")
	c := s.config("")
	c.Prefix = []string{"sh", "-c", `ulimit -n 200; exec "$@"`, "sh"}
	c.Extra += "\nmax_connections = 1000" // more than there are descriptors
	n := process.Serve(s, c, s.name, "1")
	s.watch(n)
	s.quiet("SequinsDescriptors", at(n))
	var open []*process.Client
	closeAll := func() {
		for _, c := range open {
			c.Close()
		}
	}
	s.Cleanup(closeAll)
	// Each is taken before the next, and has been used, so that it may be idle for minutes. A few descriptors are left
	// for who looks at it.
	for range int(0.93*200 - s.value(n, "process_open_fds")) {
		c := n.Client()
		open = append(open, c)
		if r, err := c.Get("/livez"); err != nil || r.Code != 200 {
			s.Fatalf("connection %d: %v, %v", len(open), r, err)
		}
	}
	s.fires("SequinsDescriptors", at(n))
	s.leads("SequinsDescriptors", "clients open connections and do not close them (`sequins_connections`)", n.Metrics(s), fmt.Sprintf("\nsequins_connections %d\n", len(open)))
	s.leads("SequinsDescriptors", "`LimitNOFILE`", n.Metrics(s), "\nprocess_max_fds 200\n")
	closeAll()
	s.quiet("SequinsDescriptors", at(n))
}

// value is what a node's exposition says of a series; -1 if it has none.
func (s *scene) value(n *process.Node, series string) float64 {
	s.Helper()
	_, after, found := strings.Cut(n.Metrics(s), "\n"+series+" ")
	if !found {
		return -1
	}
	v, _, _ := strings.Cut(after, "\n")
	return number(s.T, v)
}
