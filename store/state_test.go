package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/internal/fsys"
	"sequins/test/expect"
	"sequins/test/faultfs"
)

// someState has a value in every field.
func someState() State {
	return State{
		Served: planOf("3", "A").Content(), Totals: &Totals{Records: 7, Bytes: 1 << 40},
		Former: []content.Content{planOf("2", "A").Content(), planOf("a@b+c", "B").Content()},
		Verdicts: []Verdict{
			{planOf("4", "A").Content(), Finding{State: Held, Reason: "too <small>", Rules: "min_records 8", Against: planOf("3", "A").Content()}},
			{planOf("3", "A").Content(), Finding{State: Passed}},
		},
		Failures: []Failure{{Input: input("5"), Kind: "corrupt", Reason: "part-0: ключ", Attempts: 3, Next: testTime}},
		Pin:      "{\"version\":\"3\"}\n", Marked: true,
	}
}

func wantState(t *testing.T, what string, got, want State) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(State{})); diff != "" {
		t.Errorf("the state %s (-want +got):\n%s", what, diff)
	}
}

func TestState(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	expect.NoError(t, err)
	state, err := s.State("db")
	expect.NoError(t, err)
	wantState(t, "of an unknown db", state, State{})
	expect.NoError(t, s.SetState("db", someState()))
	expect.NoError(t, s.Close())
	s, err = Open(dir)
	expect.NoError(t, err)
	state, err = s.State("db")
	expect.NoError(t, err)
	wantState(t, "after a restart", state, someState())
	if dbs, err := s.Databases(); !slices.Equal(dbs, []string{"db"}) || err != nil {
		t.Errorf("databases: %v, %v", dbs, err)
	}
	expect.NoError(t, s.Forget("db"))
	expect.NoError(t, s.Forget("db"))
	if _, err := os.Stat(filepath.Join(dir, dataDir, "db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the db's directory is left: %v", err)
	}
	expect.NoError(t, s.SetState("db", someState())) // which was on the disk before
	state, err = s.State("db")
	expect.NoError(t, err)
	wantState(t, "of a db that is back", state, someState())
	expect.NoError(t, s.Close())
	if s.SetState("a/b", State{}) == nil {
		t.Error("a name that leads elsewhere is taken")
	}
}

// A State without contents is there after a restart; what was left while it was written is not.
func TestStateSwept(t *testing.T) {
	f := faultfs.New()
	expect.NoError(t, memStore(t, f).SetState("db", State{Pin: "x"}))
	write(t, f, "/s/data/db/STATE.json.7.tmp", "x")
	state, err := memStore(t, f).State("db")
	expect.NoError(t, err)
	wantState(t, "of a db without contents", state, State{Pin: "x"})
	if got := tree(t, f, "/s/data"); len(got) != 1 {
		t.Errorf("left are %s", got)
	}
}

// What this release does not know stays.
func TestStateOfALaterRelease(t *testing.T) {
	f, s, _ := filled(t)
	body := `{"pin":"p","zeta": [1, {"<a>":"\u2028"}],"alpha":null,"marked":true}`
	write(t, f, "/s/data/db/new", string(sealed(stateFile, body)))
	expect.NoError(t, f.Rename("/s/data/db/new", "/s/data/db/STATE.json"))
	state, err := s.State("db")
	expect.NoError(t, err)
	wantState(t, "of a later release", state, State{Pin: "p", Marked: true})
	state.Pin = ""
	expect.NoError(t, s.SetState("db", state))
	data, err := fsys.ReadFile(f, "/s/data/db/STATE.json", maxState)
	expect.NoError(t, err)
	if want := `"state":{"alpha":null,"marked":true,"zeta":[1,{"\u003ca\u003e":"\u2028"}]}}` + "\n"; !strings.HasSuffix(string(data), want) {
		t.Errorf("%s, want %s at the end", data, want)
	}
	again, err := memStore(t, f).State("db")
	expect.NoError(t, err)
	wantState(t, "afterwards", again, State{Marked: true})
}

func TestStateDamaged(t *testing.T) {
	good, err := encodeState(someState())
	expect.NoError(t, err)
	with := func(old, new string) string {
		body, err := stateFile.body(good, "good")
		expect.NoError(t, err)
		if !strings.Contains(string(body), old) {
			t.Fatalf("no %s in %s", old, body)
		}
		return string(sealed(stateFile, strings.Replace(string(body), old, new, 1)))
	}
	tests := map[string]string{
		"empty": "", "not JSON": "3\n", "more behind it": string(good) + "{}",
		"another version":      `{"format_version":2,"crc32c":"00000000","state":{}}`,
		"another checksum":     strings.Replace(string(good), `"marked":true`, `"marked":null`, 1),
		"too long":             string(good) + strings.Repeat(" ", maxState),
		"a name":               with(`"name":"3"`, `"name":"../3"`),
		"a hash":               with(testHash, testHash[1:]),
		"no division":          with(`"division"`, `"d"`),
		"negative totals":      with(`"records":7`, `"records":-7`),
		"an unknown verdict":   with(`"held"`, `"perhaps"`),
		"no kind":              with(`"corrupt"`, `""`),
		"negative attempts":    with(`"attempts":3`, `"attempts":-3`),
		"a year":               with(`"next":"2026`, `"next":"12026`),
		"another type":         with(`"marked":true`, `"marked":"yes"`),
		"an array for a state": string(sealed(stateFile, "[]")),
		"many former contents": string(sealed(stateFile, `{"former":[`+strings.Repeat(`{},`, MaxFormer)+`{}]}`)),
	}
	for name, text := range tests {
		f, s, _ := filled(t)
		expect.NoError(t, f.Alter("/s/data/db/STATE.json", func([]byte) []byte { return []byte(text) }))
		state, err := s.State("db")
		if !errors.Is(err, blocks.ErrCorrupt) || !strings.Contains(err.Error(), "/s/data/db/STATE.json") {
			t.Errorf("%s: %v", name, err)
		}
		wantState(t, name, state, State{})
		wantContents(t, memStore(t, f), "db", input("v")) // they stay
		expect.NoError(t, s.SetState("db", State{}))      // it was written before, and somebody has changed it
		_, err = s.State("db")
		expect.NoError(t, err)
	}
}

func wantContents(t *testing.T, s *Store, db string, want ...content.Input) {
	t.Helper()
	got, err := s.Contents(db)
	expect.NoError(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
}

// A State that is missing beside contents is damage, which another content does not mend.
func TestStateMissing(t *testing.T) {
	f, s, _ := filled(t)
	expect.NoError(t, f.Remove("/s/data/db/STATE.json"))
	for range 2 {
		_, err := s.State("db")
		expect.Error(t, "without the file", err, blocks.ErrCorrupt)
		_, err = s.Create("db", planOf("w", "A"))
		expect.NoError(t, err)
		_, err = s.Create("db", planOf("v", "B"))
		expect.NoError(t, err)
		s = memStore(t, f)
	}
	expect.NoError(t, s.SetState("db", State{}))
	state, err := s.State("db")
	expect.NoError(t, err)
	wantState(t, "afterwards", state, State{})
}

// What cannot be read again is not written, and the file stays as it was.
func TestStateInvalid(t *testing.T) {
	_, s, _ := filled(t)
	expect.NoError(t, s.SetState("db", someState()))
	for name, state := range map[string]State{
		"served":   {Served: content.Content{Input: input("1")}},
		"former":   {Former: make([]content.Content, 1)},
		"verdict":  {Verdicts: []Verdict{{Content: planOf("1", "A").Content()}}},
		"failure":  {Failures: []Failure{{Input: input("1")}}},
		"time":     {Failures: []Failure{{Input: input("1"), Kind: "corrupt", Next: testTime.AddDate(10_000, 0, 0)}}},
		"too long": {Pin: strings.Repeat("x", maxState)},
	} {
		if s.SetState("db", state) == nil {
			t.Errorf("%s is written", name)
		}
		state, err := s.State("db")
		expect.NoError(t, err)
		wantState(t, "after "+name, state, someState())
	}
	long := State{Failures: []Failure{{Input: input("1"), Kind: "other", Reason: strings.Repeat("ключ ", MaxReason)}}}
	expect.NoError(t, s.SetState("db", long))
	state, err := s.State("db")
	expect.NoError(t, err)
	if r := state.Failures[0].Reason; len(r) > MaxReason || len(r) < MaxReason-4 || !utf8.ValidString(r) {
		t.Errorf("a long reason is %d bytes: %q", len(r), r[len(r)-5:])
	}
}

// What a node keeps within the limits can be written, whatever JSON makes of the texts.
func TestStateWithinLimits(t *testing.T) {
	for _, text := range []string{"x", "é", `"`, "<", "\x00"} {
		state := State{Pin: strings.Repeat(text, 64<<10/len(text))}
		for i := range MaxFailures {
			in := input(fmt.Sprint("v", i))
			state.Former = append(state.Former, content.Content{Input: in, Division: testHash})
			state.Failures = append(state.Failures, Failure{Input: in, Kind: "format", Reason: strings.Repeat(text, MaxReason/len(text)), Attempts: 1})
			state.Verdicts = append(state.Verdicts, Verdict{Content: content.Content{Input: in, Division: testHash}, Finding: Finding{State: Held, Reason: strings.Repeat(text, MaxReason/len(text))}})
		}
		if err := memStore(t, faultfs.New()).SetState("db", state); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A hangingDisk does not return from an fsync of the directory of db "a" while it hangs.
type hangingDisk struct {
	fsys.FS
	hangs, end chan struct{}
}

func (d *hangingDisk) SyncDir(path string) error {
	if strings.HasSuffix(path, "/a") {
		close(d.hangs)
		<-d.end
	}
	return d.FS.SyncDir(path)
}

// While the disk hangs on one db, others are read and written.
func TestDiskHangsOnAnother(t *testing.T) {
	disk := &hangingDisk{faultfs.New(), make(chan struct{}), make(chan struct{})}
	s, err := OpenFS(disk, "/s")
	expect.NoError(t, err)
	var hanging sync.WaitGroup
	hanging.Go(func() { expect.NoError(t, s.SetState("a", State{Pin: "p"})) })
	<-disk.hangs
	d, err := s.Create("b", planOf("v", "A"))
	expect.NoError(t, err)
	expect.NoError(t, s.SetState("b", State{Pin: "p"}))
	again, err := s.Dir("b", d.Manifest().Content().Input)
	if err != nil || again != d {
		t.Errorf("%v, %v", again, err)
	}
	expect.NoError(t, s.Remove("b", d.Manifest().Content().Input))
	close(disk.end)
	hanging.Wait()
}

// A countedDisk counts what is fsynced, and can make the fsync of a db's directory fail.
type countedDisk struct {
	fsys.FS
	files, dirs int
	fails       bool
}

func (d *countedDisk) Create(name string) (fsys.File, error) {
	f, err := d.FS.Create(name)
	return &countedFile{f, d}, err
}

func (d *countedDisk) SyncDir(path string) error {
	d.dirs++
	if d.fails && strings.HasSuffix(path, "/db") {
		return syscall.EIO
	}
	return d.FS.SyncDir(path)
}

type countedFile struct {
	fsys.File
	disk *countedDisk
}

func (f *countedFile) Sync() error {
	f.disk.files++
	return f.File.Sync()
}

// TestFsyncs counts what each change costs.
func TestFsyncs(t *testing.T) {
	disk := &countedDisk{FS: faultfs.New()}
	s, err := OpenFS(disk, "/s")
	expect.NoError(t, err)
	cost := func(what string, files, dirs int, do func() error) {
		t.Helper()
		beforeFiles, beforeDirs := disk.files, disk.dirs
		expect.NoError(t, do())
		if f, d := disk.files-beforeFiles, disk.dirs-beforeDirs; f != files || d != dirs {
			t.Errorf("%s syncs %d files and %d directories, want %d and %d", what, f, d, files, dirs)
		}
	}
	var d *Dir
	// The state and the manifest; data, db, and the directory of the content. MkdirAll syncs some more, which are not counted here.
	cost("the first content of a db", 2, 3, func() (err error) { d, err = s.Create("db", planOf("v", "A")); return err })
	cost("a block", 1, 1, func() error { return addBlock(d, 0) })
	cost("a switch", 1, 1, func() error { return s.SetState("db", someState()) })
	cost("the same state", 0, 0, func() error { return s.SetState("db", someState()) })
	cost("the second content of a db", 1, 1, func() error { _, err := s.Create("db", planOf("w", "A")); return err })

	s, err = OpenFS(disk, "/s")
	expect.NoError(t, err)
	state, err := s.State("db")
	expect.NoError(t, err)
	cost("the same state after a restart", 0, 0, func() error { return s.SetState("db", state) })

	disk.fails = true
	state.Marked = false
	for range 2 { // though the second time it is in place
		expect.Error(t, "without a sync", s.SetState("db", state), syscall.EIO)
		now, err := s.State("db")
		expect.NoError(t, err)
		wantState(t, "that may not be durable", now, state)
	}
	disk.fails = false
	cost("a state that may not be durable", 1, 1, func() error { return s.SetState("db", state) })
	cost("a state that is durable", 0, 0, func() error { return s.SetState("db", state) })
}

// TestStatePowerLoss cuts the file that is being written at each byte, at each step: afterwards there is the old State or the new one.
func TestStatePowerLoss(t *testing.T) {
	old, now := State{Pin: "old"}, someState()
	for n := 0; ; n++ {
		f, s, _ := filled(t)
		expect.NoError(t, s.SetState("db", old))
		f.PowerOffAfter(n)
		err := s.SetState("db", now)
		f.PowerOn()
		for left := range f.Outcomes(2000) {
			state, rerr := memStore(t, left).State("db")
			expect.NoError(t, rerr)
			if state.Pin != old.Pin || err == nil {
				wantState(t, fmt.Sprintf("after power loss at call %d", n), state, now)
			}
			wantContents(t, memStore(t, left), "db", input("v"))
		}
		if err == nil {
			return
		}
	}
}

// Where the disk is full what frees goes on, and nothing is lost.
func TestFullDiskFrees(t *testing.T) {
	f, s, d := filled(t)
	_, err := s.Create("db", planOf("w", "A"))
	expect.NoError(t, err)
	expect.NoError(t, s.SetState("db", someState()))
	f.SetFree(0)
	more := someState()
	more.Pin = strings.Repeat("x", 10_000)
	expect.Error(t, "SetState", s.SetState("db", more), syscall.ENOSPC)
	_, err = s.Create("db", planOf("x", "A"))
	expect.Error(t, "Create", err, syscall.ENOSPC)
	state, err := s.State("db")
	expect.NoError(t, err)
	wantState(t, "on a full disk", state, someState())
	expect.NoError(t, d.SetAside(0))
	expect.NoError(t, d.RemoveBlock(1))
	f.SetFree(0)
	expect.NoError(t, s.Remove("db", input("w")))
	wantStore(t, s, "db/v A []", "served 3")
	wantStore(t, memStore(t, f.Crash(faultfs.Lose)), "db/v A []", "served 3")
	f.SetFree(1 << 20)
	expect.NoError(t, s.SetState("db", more))
}

// Whatever is in the file, what is taken from it can be written, and is the same when it is read again.
func FuzzState(f *testing.F) {
	good, err := encodeState(someState())
	expect.NoError(f, err)
	f.Add(good, false)
	f.Add([]byte(`{"Served":null,"ſerved":1,"x":"\ud800","PIN":"a"}`), true)
	f.Add([]byte(`{"former":[{"name":"a","input":"0123456789abcdef","division":"0123456789abcdef"}]}`), true)
	f.Fuzz(func(t *testing.T, data []byte, isBody bool) {
		if isBody {
			data = sealed(stateFile, string(data))
		}
		state, err := decodeState(data, "f")
		if err != nil {
			if !errors.Is(err, blocks.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		once, err := encodeState(state)
		if errors.Is(err, ErrTooLarge) {
			return // what is escaped is longer
		}
		expect.NoError(t, err)
		again, err := decodeState(once, "f")
		expect.NoError(t, err)
		twice, err := encodeState(again)
		expect.NoError(t, err)
		if !bytes.Equal(once, twice) {
			t.Errorf("%s\nbecame\n%s", once, twice)
		}
	})
}

// A file that is cut at any byte is damage, and one beside it that was being written is of no consequence.
func TestStateCut(t *testing.T) {
	data, err := encodeState(someState())
	expect.NoError(t, err)
	f, s, _ := filled(t)
	expect.NoError(t, s.SetState("db", State{Pin: "old"}))
	for n := range len(data) - 1 { // without the last newline it is whole
		if _, err := decodeState(data[:n], "f"); !errors.Is(err, blocks.ErrCorrupt) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
		write(t, f, "/s/data/db/STATE.json.9.tmp", string(data[:n]))
		state, err := memStore(t, f).State("db")
		expect.NoError(t, err)
		wantState(t, "beside a file that is cut", state, State{Pin: "old"})
		checkTidy(t, f, "/s")
	}
	for bit := range len(data) * 8 {
		flipped := bytes.Clone(data)
		flipped[bit/8] ^= 1 << (bit % 8)
		if state, err := decodeState(flipped, "f"); err == nil {
			wantState(t, fmt.Sprintf("with bit %d flipped", bit), state, someState()) // the case of a letter in the envelope, or the newline
		}
	}
}
