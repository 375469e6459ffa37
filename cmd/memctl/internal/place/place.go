package place

import (
	"context"
	"fmt"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/s3"
)

// Open opens the remote at a URL; it matches varve.Options.Remote.
func Open(ctx context.Context, url string) (remote.Remote, error) {
	return at(ctx, url, varve.OpenFolder, s3.Open)
}

// Create makes the place that a URL names a remote, after a test of the place, or opens the remote there.
func Create(ctx context.Context, url string) (remote.Remote, error) {
	return at(ctx, url, varve.CreateFolder, s3.Create)
}

func at(ctx context.Context, url string, folder func(context.Context, string) (remote.Remote, error),
	bucket func(context.Context, s3.Options) (*s3.Remote, error)) (remote.Remote, error) {
	scheme, _, _ := strings.Cut(url, ":")
	switch scheme {
	case "file":
		return folder(ctx, url)
	case "s3":
		o, err := s3.ParseURL(url)
		if err != nil {
			return nil, err
		}
		r, err := bucket(ctx, *o)
		if err != nil {
			return nil, err // not r, which would be an interface that is not nil
		}
		return r, nil
	}
	return nil, fmt.Errorf("%w: the URL does not name a place for a copy -> file:///PATH, or "+
		"s3://BUCKET/PREFIX?endpoint=HOST:PORT&region=REGION", errs.ErrInvalid)
}
