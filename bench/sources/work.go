package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/blocks"
	"sequins/load"
	"sequins/source"
	"sequins/source/s3"
	"sequins/test/gateway"
	"sequins/test/speed"
)

// work does one task in its own process and prints its cost to the standard output.
func work(job string) error {
	var t task
	if err := json.Unmarshal([]byte(job), &t); err != nil {
		return err
	}
	start := time.Now()
	err := fmt.Errorf("no such task: %q", t.Name)
	switch t.Name {
	case rowStream:
		err = t.stream()
	case rowRead:
		err = t.read()
	case rowLoad:
		err = t.load()
	}
	if err != nil {
		return err
	}
	o := outcome{Seconds: time.Since(start).Seconds()}
	if o.Peak, err = proc.PeakMemory(os.Getpid()); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(o); err != nil {
		return err
	}
	os.Exit(0) // without the tables of a parent
	return nil
}

// whole is an error unless n is the size of the object.
func (t *task) whole(n int64, err error) error {
	if err == nil && n != t.Size {
		err = fmt.Errorf("%d bytes of %d", n, t.Size)
	}
	return err
}

// stream reads the object by one request.
func (t *task) stream() error {
	bucket, name := gateway.Bucket, key
	out, err := gateway.Client(t.Endpoint).GetObject(context.Background(), &sdk.GetObjectInput{Bucket: aws.String(bucket), Key: &name})
	if err != nil {
		return err
	}
	defer out.Body.Close()
	return t.whole(io.Copy(io.Discard, out.Body))
}

func (t *task) source() (source.Source, error) {
	return s3.New(context.Background(), s3.Options{
		URL: "s3://" + gateway.Bucket, Region: gateway.Region, Endpoint: t.Endpoint, PathStyle: true,
		AccessKeyID: gateway.AccessKey, SecretAccessKey: gateway.SecretKey,
	})
}

// read reads it as a load does, and does nothing with it.
func (t *task) read() error {
	src, err := t.source()
	if err != nil {
		return err
	}
	f, err := src.Open(context.Background(), data.DB, data.Version, source.File{Name: "part-r-00000"}, source.ReadOptions{})
	if err != nil {
		return err
	}
	defer f.Close()
	return t.whole(io.Copy(io.Discard, f))
}

// load loads a version like a node.
func (t *task) load() error {
	src, err := t.source()
	if err != nil {
		return err
	}
	return speed.LoadAll(context.Background(), load.New(src, nil, load.Options{Compression: blocks.FSST}), t.Out, data.DB, data.Version)
}
