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

var errSymlink = source.Fault(errors.New("symbolic links are not supported in HDFS"))

// exceptions maps a namenode's permanent errors. All others may be temporary:
// standby, safe mode, overload, and any other java.io.IOException.
var exceptions = map[string]error{
	"java.io.FileNotFoundException":                               fs.ErrNotExist,
	"org.apache.hadoop.fs.ParentNotDirectoryException":            fs.ErrNotExist,
	"org.apache.hadoop.fs.PathIsNotDirectoryException":            fs.ErrNotExist,
	"org.apache.hadoop.fs.InvalidPathException":                   fs.ErrNotExist, // no file can have such a name
	"org.apache.hadoop.fs.UnresolvedLinkException":                errSymlink,
	"org.apache.hadoop.hdfs.protocol.UnresolvedPathException":     errSymlink,
	"org.apache.hadoop.security.AccessControlException":           fs.ErrPermission,
	"org.apache.hadoop.security.authorize.AuthorizationException": fs.ErrPermission,
}

// explain converts an error of the library. r is the namenode's last response if
// that was an error: the library keeps at most its class.
func explain(err error, r refusal) error {
	if _, ok := errors.AsType[final](err); ok {
		return err
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // its path lacks the host, which ours contains
	}
	class := r.class
	if e := lib.Error(nil); errors.As(err, &e) {
		class = e.Exception()
	}
	meaning := exceptions[class]
	if meaning == fs.ErrPermission && strings.HasSuffix(r.message, "(is not a directory)") {
		meaning = fs.ErrNotExist // the path is below a file
	}
	if class == "" && err.Error() == "the file is not a directory" { // as the library says of a file that is listed
		meaning = fs.ErrNotExist
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

// explainRead converts an error of the library that occurred while reading from a
// datanode.
func explainRead(err error, datanode net.Conn) error {
	err = explain(err, refusal{}) // the namenode's last response is not about this
	if datanode == nil {
		return err
	}
	err = fmt.Errorf("%w, last from the datanode %v", err, datanode.RemoteAddr())
	for _, sign := range unprotected {
		if strings.Contains(err.Error(), sign) {
			return final{fmt.Errorf("%w; data transfer protection: %s", err, protections)}
		}
	}
	return err
}

// unprotected are error messages caused by a datanode whose data protection the
// library does not support.
var unprotected = []string{"negotiating data protection", "no available cipher", "proto: cannot parse"}
