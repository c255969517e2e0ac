package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"sequins/internal/content"
	"sequins/load"
	"sequins/source"
	"sequins/store"
	"sequins/version/pin"
)

// What is served can differ from its files in the source: no rule can tell for certain that all files are there, and people change files. So the
// version that is served is compared with the source after the switch, and versions of which other nodes hold other contents are, too. If files have
// been added or replaced, the version is listed with its new input when it is complete by the rules for new versions.

// faultAfter is how long a content has something wrong before that is a Fault to be reported: other nodes may be loading the version again.
const faultAfter = time.Minute

// A Fault is what is wrong with a content that is that of the source, for people. It is reported once it Lasts.
type Fault struct {
	Text  string
	Lasts bool
	since time.Time
}

// compare inspects the versions in Compare, and records those whose files differ from those of this node's content.
func (o *observer) compare(ctx context.Context, allowed pin.File) {
	o.found.Wrong, o.found.Differs = make(map[content.Input]Fault), make(map[content.Input]string)
	for in, m := range o.Compare {
		if allowed.Allows(in.Name) { // otherwise the pin decides what is loaded
			o.compareWith(ctx, in, m)
		}
	}
}

func (o *observer) compareWith(ctx context.Context, in content.Input, m store.Manifest) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	began := time.Now()
	l, now, err := o.listing(ctx, in.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.Log.Debug("version cannot be compared: it is not in the source any more", "version", in.Name)
	case err != nil:
		o.keepCompared(in)
		o.found.LeftOut[uncompared] = fmt.Sprintf("version %s of %s cannot be compared with its files in the source: %v", in.Name, o.DB, err)
		o.lookAfterFailure(in.Name)
	case now != in:
		o.noteDiffers(in, now, &l, began, load.Differing(m, l.Files).String())
	case o.Input(in.Name, l) != in: // a part of its files
		o.noteWrong(in, "files of version %s of %s have been deleted from the source; it is served from the blocks of all of its files, "+
			"which other nodes can only copy; write a new version")
	case o.Apart[in]:
		o.noteWrong(in, "other nodes have loaded version %s of %s from other files or fields than this node, so that they do not use each other's blocks; "+
			"configure the same key, value, partitioner and partitions for it on all nodes, unless its files have been changed or deleted, and write a new version")
	}
}

// keepCompared keeps what the last listing has found of a content that cannot be compared now. The input that takes its place may be loading.
func (o *observer) keepCompared(in content.Input) {
	text := o.Last.Differs[in]
	if text == "" {
		return
	}
	o.found.Differs[in] = text
	for _, listed := range o.Last.Inputs {
		if listed.Name == in.Name {
			o.list(listed)
		}
	}
}

// noteDiffers records how a content differs from the source, and lists the input of the source if it is complete.
func (o *observer) noteDiffers(in, now content.Input, l *source.Listing, began time.Time, how string) {
	then := "it is loaded again when its files stay the same"
	if o.Mixed {
		then = "it is not loaded again while nodes of the original sequins are members, which do not tell one from the other: write a new version"
	}
	if how == "" {
		how = "key, value, partition columns, partitioner or partitions are configured differently"
	}
	o.found.Differs[in] = fmt.Sprintf("version %s of %s was loaded from something else than the source has now (%s); %s", in.Name, o.DB, how, then)
	o.keepLook(in.Name)
	switch {
	case o.Mixed:
	case l.Incomplete != "":
		o.lookAfterFailure(in.Name)
	case o.unsettled(now, l, began) == "":
		o.list(now)
	}
}

// noteWrong records what is wrong with a content. The format has its version and the database.
func (o *observer) noteWrong(in content.Input, format string) {
	f := Fault{Text: fmt.Sprintf(format, in.Name, o.DB), since: o.now}
	if before := o.Last.Wrong[in]; before.Text == f.Text {
		f.since = before.since
	}
	if f.Lasts = o.now.Sub(f.since) >= faultAfter; !f.Lasts {
		o.lookAgain(f.since.Add(faultAfter))
	}
	o.found.Wrong[in] = f
}

// PassedOver describes the first of a database's versions that is not loaded because its name is less byte by byte than the name of
// the served version, and has the greater number, as 10 is after 9. It returns "" if there is no such version. The names are ascending.
func PassedOver(db string, names []string, served string) string {
	for _, other := range names {
		if other >= served {
			break
		}
		if numberedAfter(other, served) {
			return fmt.Sprintf("version %s of %s is in the source and is not loaded: names are compared byte by byte, and %[1]s is less than %[3]s, which is served; write it with a greater name, such as a date or numbers of equal length",
				other, db, served)
		}
	}
	return ""
}

// numberedAfter reports whether two names differ in the number at their ends alone, and that of a is greater.
func numberedAfter(a, b string) bool {
	const digits = "0123456789"
	stemA, stemB := strings.TrimRight(a, digits), strings.TrimRight(b, digits)
	a, b = strings.TrimLeft(a[len(stemA):], "0"), strings.TrimLeft(b[len(stemB):], "0")
	return stemA == stemB && cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0
}
