package place

import (
	"context"
	"fmt"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/postgres"
	"github.com/varve-db/varve/remote/s3"
)

// Open opens the remote at a URL; it matches varve.Options.Remote.
func Open(ctx context.Context, url string) (remote.Remote, error) {
	return at(ctx, url, ways{varve.OpenFolder, s3.Open, postgres.Open})
}

// Create makes the place that a URL names a remote, after a test of the place, or opens the remote there.
func Create(ctx context.Context, url string) (remote.Remote, error) {
	return at(ctx, url, ways{varve.CreateFolder, s3.Create, postgres.Create})
}

// ways are the functions that open or create the remote in each kind of place.
type ways struct {
	folder   func(context.Context, string) (remote.Remote, error)
	bucket   func(context.Context, s3.Options) (*s3.Remote, error)
	database func(context.Context, postgres.Options) (*postgres.Remote, error)
}

func at(ctx context.Context, url string, w ways) (remote.Remote, error) {
	scheme, _, _ := strings.Cut(url, ":")
	switch scheme {
	case "file":
		return w.folder(ctx, url)
	case "s3":
		return parsed(ctx, url, s3.ParseURL, w.bucket)
	case "postgres", "postgresql":
		return parsed(ctx, url, postgres.ParseURL, w.database)
	}
	return nil, fmt.Errorf("%w: the URL does not name a place for a copy -> file:///PATH, "+
		"s3://BUCKET/PREFIX?endpoint=HOST:PORT&region=REGION, or postgres://USER@HOST:PORT/DATABASE?schema=NAME",
		errs.ErrInvalid)
}

// parsed opens the remote that a URL names. After an error it returns nil itself, since an interface with a nil pointer
// is not nil.
func parsed[O any, R remote.Remote](ctx context.Context, url string, parse func(string) (*O, error),
	open func(context.Context, O) (R, error)) (remote.Remote, error) {
	o, err := parse(url)
	if err != nil {
		return nil, err
	}
	r, err := open(ctx, *o)
	if err != nil {
		return nil, err
	}
	return r, nil
}
