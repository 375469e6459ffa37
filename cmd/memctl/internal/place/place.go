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

// Open opens the remote (the place elsewhere to which a store sends its copy) at a URL. The function Open can be the
// value of varve.Options.Remote.
func Open(ctx context.Context, url string) (remote.Remote, error) {
	return remoteAt(ctx, url, ways{varve.OpenFolder, s3.Open, postgres.Open})
}

// Create is like Open, but if there is no remote at the URL, Create tests the place and creates a remote there.
func Create(ctx context.Context, url string) (remote.Remote, error) {
	return remoteAt(ctx, url, ways{varve.CreateFolder, s3.Create, postgres.Create})
}

// ways has, for each kind of place, the function that opens or creates a remote there.
type ways struct {
	folder   func(context.Context, string) (remote.Remote, error)
	bucket   func(context.Context, s3.Options) (*s3.Remote, error)
	database func(context.Context, postgres.Options) (*postgres.Remote, error)
}

func remoteAt(ctx context.Context, url string, w ways) (remote.Remote, error) {
	scheme, _, _ := strings.Cut(url, ":")
	switch scheme {
	case "file":
		return w.folder(ctx, url)
	case "s3":
		return parsed(ctx, url, s3.ParseURL, w.bucket)
	case "postgres", "postgresql":
		return parsed(ctx, url, postgres.ParseURL, w.database)
	}
	return nil, fmt.Errorf("%w: the URL does not name a place for a copy -> use file:///PATH, "+
		"s3://BUCKET/PREFIX?endpoint=HOST:PORT&region=REGION, or postgres://USER@HOST:PORT/DATABASE?schema=NAME",
		errs.ErrInvalid)
}

// parsed returns the remote at a URL. The function parse parses the URL, and the function open opens the remote. After
// an error, the result is a nil interface and not an interface that contains a nil pointer.
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
