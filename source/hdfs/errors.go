package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"

	lib "github.com/colinmarc/hdfs/v2"

	"sequins/source"
)

var errSymlink = source.Fault(errors.New("a symbolic link, which is not followed in HDFS"))

// exceptions says what those of a namenode mean that trying again would not
// change. All others may pass: that it is on standby or in safe mode, that it
// is too busy, and whatever else comes as a java.io.IOException.
var exceptions = map[string]error{
	"java.io.FileNotFoundException":                               fs.ErrNotExist,
	"org.apache.hadoop.fs.ParentNotDirectoryException":            fs.ErrNotExist,
	"org.apache.hadoop.fs.PathIsNotDirectoryException":            fs.ErrNotExist,
	"org.apache.hadoop.fs.InvalidPathException":                   fs.ErrNotExist, // nothing can have such a name
	"org.apache.hadoop.fs.UnresolvedLinkException":                errSymlink,
	"org.apache.hadoop.hdfs.protocol.UnresolvedPathException":     errSymlink,
	"org.apache.hadoop.security.AccessControlException":           fs.ErrPermission,
	"org.apache.hadoop.security.authorize.AuthorizationException": fs.ErrPermission,
}

// explain says what an error of the library means. r is what the namenode
// answered last, if that was an error: the library keeps at most its class.
func explain(err error, r refusal) error {
	if f := (final{}); errors.As(err, &f) {
		return err
	}
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err // its path lacks the host, and is in ours
	}
	class := r.class
	if e := lib.Error(nil); errors.As(err, &e) {
		class = e.Exception()
	}
	meaning := exceptions[class]
	if meaning == fs.ErrPermission && strings.HasSuffix(r.message, "(is not a directory)") {
		meaning = fs.ErrNotExist // what is asked for would be below a file
	}
	for _, known := range []error{fs.ErrNotExist, fs.ErrPermission, fs.ErrInvalid} {
		if meaning == nil && errors.Is(err, known) {
			meaning = known
		}
	}
	switch {
	case meaning != nil && r.message != "":
		return final{fmt.Errorf("%w (%s)", meaning, r.message)}
	case meaning != nil:
		return final{meaning}
	case r.message != "" && !errors.Is(err, context.Canceled):
		return fmt.Errorf("%w (%s: %s)", err, r.class[strings.LastIndexByte(r.class, '.')+1:], r.message)
	}
	return err
}

// explainRead says what an error of the library means that came with a
// datanode's data.
func explainRead(err error, datanode net.Addr) error {
	err = explain(err, refusal{}) // what a namenode said last is not about this
	if datanode == nil {
		return err
	}
	err = fmt.Errorf("%w, last from the datanode %v", err, datanode)
	for _, sign := range unprotected {
		if strings.Contains(err.Error(), sign) {
			return final{fmt.Errorf("%w; as data transfer protection, %s", err, protections)}
		}
	}
	return err
}

// unprotected are the signs of a datanode that wants to protect its data in a
// way that the library cannot: it fails, or it reads the encrypted answer as
// it is.
var unprotected = []string{"negotiating data protection", "no available cipher", "proto: cannot parse"}
