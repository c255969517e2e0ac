// Command versitygw is versitygw without what the tests do not use: the client commands, other backends than directories, and its
// tests of integration, which cost most of the time that the released command takes to compile.
//
//	versitygw ADDRESS ACCESS-KEY SECRET-KEY REGION DIRECTORY
package main

import (
	"context"
	"log"
	"os"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	address, accessKey, secretKey, region, dir := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	// The numbers are the defaults of the command.
	opts := posix.PosixOpts{Concurrency: 5000, CopyObjectThreshold: 5 << 30}
	opts.SetNewDirPerm(0o755)
	opts.SetNewFilePerm(0o644)
	backend, err := posix.New(dir, meta.XattrMeta{}, opts)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(embedgw.RunVersityGW(context.Background(), backend, &embedgw.Config{
		RootUserAccess: accessKey, RootUserSecret: secretKey, Region: region, Ports: []string{address}, Quiet: true,
		MaxConnections: 250_000, MaxRequests: 100_000, MultipartMaxParts: 10_000,
	}))
}
