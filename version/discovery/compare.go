package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// aloneAfter is how long a node waits for another node with its content before it reports that there is
// none: the others may be loading the version again.
const aloneAfter = time.Minute

// compare inspects the versions in Compare, and records those whose files differ from those of this node's content.
func (o *observer) compare(ctx context.Context, allowed pin.File) {
	o.found.Wrong, o.found.Differs, o.found.apart = make(map[content.Input]string), make(map[content.Input]string), make(map[content.Input]time.Time)
	for in, m := range o.Compare {
		if !allowed.Allows(in.Name) {
			continue // the pin decides what is loaded
		}
		if failed := o.Last.Looks[in.Name]; o.Again && o.now.Before(failed.retry) {
			o.keepCompared(in)
			o.lookAfterFailure(in.Name, failed)
			continue
		}
		o.compareWith(ctx, in, m)
	}
}

// compareWith inspects one version.
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
		o.lookAfterFailure(in.Name, o.failLook(in.Name, err.Error()))
	case now != in:
		o.noteDiffers(in, now, &l, began, load.Differing(m, l.Files).String())
	case o.Input(in.Name, l) != in: // a part of its files
		o.noteWrong(in, deletedFiles(o.DB, in.Name))
	case o.Apart[in]:
		o.noteApart(in)
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
	switch {
	case o.Mixed:
	case l.Incomplete != "":
		o.lookAfterFailure(in.Name, o.failLook(in.Name, l.Incomplete))
	case l.Settled(o.Settle) || o.States[now].Settled || o.settling(in.Name, l, began) == "":
		o.list(now)
	}
}

// noteApart records a content that no other node holds, although other nodes hold other contents of the version: after a while, that is wrong.
func (o *observer) noteApart(in content.Input) {
	since, before := o.Last.apart[in]
	if !before {
		since = o.now
	}
	o.found.apart[in] = since
	if o.now.Sub(since) < aloneAfter {
		o.lookAgain(since.Add(aloneAfter))
		return
	}
	o.noteWrong(in, unshared(o.DB, in.Name))
}

// noteWrong records what is wrong with a content. It is reported if the next listing finds the same.
func (o *observer) noteWrong(in content.Input, text string) {
	o.found.Wrong[in] = text
	if o.Last.Wrong[in] != text {
		o.lookAgain(o.now.Add(aloneAfter))
	}
}

// unshared describes a version of which all other nodes hold another content although this node's is that of the source, with a remedy.
func unshared(db, name string) string {
	return fmt.Sprintf("other nodes have loaded version %s of %s from other files or fields than this node, so that they do not use each other's blocks; "+
		"configure the same key, value, partitioner and partitions for it on all nodes, unless its files have been changed or deleted, and write a new version", name, db)
}

// deletedFiles describes a version of which files have been deleted from the source, with a remedy.
func deletedFiles(db, name string) string {
	return fmt.Sprintf("files of version %s of %s have been deleted from the source; it is served from the blocks of all of its files, "+
		"which other nodes can only copy; write a new version", name, db)
}
