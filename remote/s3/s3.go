package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
)

// Options name a place in an object store, and how to reach it.
type Options struct {
	Bucket string
	Prefix string // prefix of all names, without slashes at its ends; may be empty
	// Endpoint is the host of the object store, with a port if it has one; empty for Amazon S3.
	Endpoint string
	Region   string // empty: the region that the environment names, or that the object store reports
	NoTLS    bool   // plain HTTP

	// Credentials of the object store; nil: those of the environment, see Environment.
	Credentials *credentials.Credentials
	// Transport carries the requests; nil selects one with time limits.
	Transport http.RoundTripper
	Clock     func() time.Time
	Sleep     func(ctx context.Context, d time.Duration) error
	Random    io.Reader
}

// ParseURL returns the place that a URL names: s3://BUCKET/PREFIX?endpoint=HOST:PORT&region=REGION. With tls=off the
// connection is plain HTTP. Credentials in the URL are refused.
func ParseURL(text string) (*Options, error) {
	invalid := func(format string, args ...any) (*Options, error) {
		return nil, fmt.Errorf("%w: %s", errs.ErrInvalid, fmt.Sprintf(format, args...))
	}
	u, err := url.Parse(text)
	if err != nil { // its message has the URL, and the URL may have a password
		return invalid("not a URL -> s3://BUCKET/PREFIX?endpoint=HOST:PORT&region=REGION")
	}
	if u.User != nil {
		return invalid("credentials in a URL end up in histories and logs -> set AWS_ACCESS_KEY_ID and " +
			"AWS_SECRET_ACCESS_KEY, or VARVE_S3_ACCESS_KEY_ID and VARVE_S3_SECRET_ACCESS_KEY")
	}
	o := &Options{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	if u.Scheme != "s3" || o.Bucket == "" || u.Fragment != "" || strings.Contains(o.Bucket, ":") ||
		strings.Contains(o.Prefix, "@") {
		return invalid("the URL is not that of a bucket -> s3://BUCKET/PREFIX?endpoint=HOST:PORT&region=REGION")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return invalid("the parameters of the URL cannot be read -> write ?endpoint=HOST:PORT&region=REGION")
	}
	for name, values := range q {
		value := values[len(values)-1]
		switch name {
		case "endpoint":
			o.Endpoint = value
		case "region":
			o.Region = value
		case "tls":
			if value != "on" && value != "off" {
				return invalid("tls=%s is not supported -> use tls=on or tls=off", value)
			}
			o.NoTLS = value == "off"
		default:
			return invalid("%q in the URL is unknown -> endpoint, region, tls", name)
		}
	}
	for _, scheme := range []string{"https://", "http://"} {
		if host, ok := strings.CutPrefix(o.Endpoint, scheme); ok {
			o.Endpoint = strings.TrimSuffix(host, "/")
			o.NoTLS = o.NoTLS || scheme == "http://"
		}
	}
	if strings.ContainsAny(o.Endpoint, "/@?#") {
		return invalid("the endpoint must be HOST or HOST:PORT")
	}
	return o, nil
}

// URL returns the place as a URL, which ParseURL reads.
func (o *Options) URL() string {
	u := url.URL{Scheme: "s3", Host: o.Bucket, Path: "/" + o.Prefix}
	q := url.Values{}
	for name, value := range map[string]string{"endpoint": o.Endpoint, "region": o.Region} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if o.NoTLS {
		q.Set("tls", "off")
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// Remote is a remote.Remote that keeps the copy of a store in an object store.
type Remote struct {
	o    Options
	core minio.Core
	id   uuid.UUID
	most limits

	mu   sync.Mutex
	seen *document // the head that this Remote has last read or stored, which may not be the newest
	tag  string    // ETag of that head
}

var _ remote.Remote = (*Remote)(nil)

// Open opens the remote at a place. If the place has no remote, the error matches remote.ErrNoRemote, and nothing is
// created.
func Open(ctx context.Context, o Options) (*Remote, error) {
	r, err := connect(o)
	if err != nil {
		return nil, err
	}
	d, _, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	r.id = d.Remote
	return r, nil
}

// Create makes a place a remote. It first tests the object store: if two writers can both succeed there, the error
// matches remote.ErrUnsuitable. If the place is a remote already, Create repeats the test and opens the remote. The
// bucket must exist.
func Create(ctx context.Context, o Options) (*Remote, error) {
	r, err := connect(o)
	if err != nil {
		return nil, err
	}
	if _, _, err = r.load(ctx); errors.Is(err, remote.ErrNoRemote) {
		err = r.empty(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := r.probe(ctx); err != nil {
		return nil, err
	}
	d := &document{Format: format}
	for _, id := range []*uuid.UUID{&d.Remote, &d.Write} {
		if *id, err = uuid.NewRandomFromReader(r.o.Random); err != nil {
			return nil, err
		}
	}
	if err := r.store(ctx, d, ""); err != nil && !refused(err) { // refused: it is a remote already
		return nil, err
	}
	return Open(ctx, o)
}

// empty returns an error if the name of any object begins with the prefix.
func (r *Remote) empty(ctx context.Context) error {
	for name, err := range r.names(ctx, "") {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(name.name, probeFolder) {
			return fmt.Errorf("%s: %w: there are other objects (%s) -> name an empty prefix", r.Place(), errs.ErrInvalid,
				name.name)
		}
	}
	return nil
}

// connect returns a Remote. It sends no request yet.
func connect(o Options) (*Remote, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = vfs.Sleep
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Credentials == nil {
		var err error
		if o.Credentials, err = Environment(); err != nil {
			return nil, err
		}
	}
	if o.Transport == nil {
		o.Transport = transport()
	}
	endpoint := o.Endpoint
	if endpoint == "" {
		endpoint = "s3.amazonaws.com"
	}
	region := o.Region
	if region == "" {
		region = environmentRegion()
	}
	client, err := minio.New(endpoint, &minio.Options{Creds: o.Credentials, Secure: !o.NoTLS, Transport: o.Transport,
		Region: region, MaxRetries: 4})
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errs.ErrInvalid, o.URL(), err)
	}
	return &Remote{o: o, core: minio.Core{Client: client}, most: usual}, nil
}

// transport returns a transport that ends a request if the other side does not respond.
func transport() http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       time.Minute,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: time.Minute,
		DisableCompression:    true,
	}
}

// ID returns the ID of the remote, as the head of the remote records it.
func (r *Remote) ID() uuid.UUID { return r.id }

// Place returns the URL of the place, which has no credentials.
func (r *Remote) Place() string { return r.o.URL() }

// Close closes idle connections.
func (r *Remote) Close() error {
	if t, ok := r.o.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return nil
}
