package redis

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/working"
)

// DefaultPrefix begins every key when Options.Prefix is empty.
const DefaultPrefix = "wm:"

// Options of a Home. URL is all that is needed.
type Options struct {
	// URL is redis://[user:password@]host:port/db, rediss:// for TLS, unix://path;
	// a cluster has cluster=true or further nodes in addr=host:port. Time-outs and
	// the pool are in its query: dial_timeout, read_timeout, write_timeout,
	// pool_size, min_idle_conns, pool_timeout, conn_max_idle_time and so on, as
	// ParseURL of go-redis reads them.
	URL string
	// Prefix begins every key. Without braces, which belong to the hash tag.
	Prefix string
	// Fallback: where Redis cannot be reached, work goes on in this process, and is
	// not in Redis afterwards; see the package comment. Otherwise it is an error.
	Fallback bool
	// RetryAfter is how often a fallback looks for Redis; 0: a second.
	RetryAfter time.Duration
	// OnEvent is told when a fallback begins and when it has ended. It must not
	// call the Home.
	OnEvent func(Event)
	// Clock is that of the fallback; lifetimes in Redis go by the server's. nil:
	// that of the system.
	Clock working.Clock
}

// Validate says what is wrong.
func (o *Options) Validate() error {
	_, err := o.client()
	return err
}

func (o *Options) prefix() string {
	if o.Prefix == "" {
		return DefaultPrefix
	}
	return o.Prefix
}

// client makes a client, which connects when it is first used. Commands are not
// sent again by go-redis: it cannot know whether they were carried out.
func (o *Options) client() (goredis.UniversalClient, error) {
	bad := func(field, value string, err error) error {
		return &errs.FieldError{Field: field, Value: errs.Quote(value), Err: err}
	}
	if strings.ContainsAny(o.Prefix, "{}") {
		return nil, bad("Options.Prefix", o.Prefix, errors.New("braces mark the part of a key by which a cluster is divided; leave them out"))
	}
	if o.RetryAfter < 0 {
		return nil, bad("Options.RetryAfter", o.RetryAfter.String(), errors.New("it is not negative"))
	}
	u, err := url.Parse(o.URL)
	if err != nil || o.URL == "" {
		// url.Error holds the whole URL, with its password.
		return nil, &errs.FieldError{Field: "Options.URL", Err: errors.New("it is not a URL; it looks like redis://user:password@host:6379/0")}
	}
	hidden := u.Redacted()
	query := u.Query()
	cluster := query.Get("cluster") == "true" || query.Has("addr")
	query.Del("cluster")
	u.RawQuery = query.Encode()
	if cluster {
		c, err := goredis.ParseClusterURL(u.String())
		if err != nil {
			return nil, bad("Options.URL", hidden, fmt.Errorf("%w", err))
		}
		c.MaxRetries, c.Protocol, c.DisableRoutingPolicies, c.DisableIdentity = -1, 2, true, true
		c.Dialer = dialer(&goredis.Options{DialTimeout: dialTimeout(c.DialTimeout), TLSConfig: c.TLSConfig})
		c.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		return goredis.NewClusterClient(c), nil
	}
	c, err := goredis.ParseURL(u.String())
	if err != nil {
		return nil, bad("Options.URL", hidden, fmt.Errorf("%w", err))
	}
	c.MaxRetries, c.Protocol, c.DisableIdentity = -1, 2, true
	c.Dialer = dialer(&goredis.Options{DialTimeout: dialTimeout(c.DialTimeout), TLSConfig: c.TLSConfig})
	c.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return goredis.NewClient(c), nil
}

// dialTimeout is go-redis's own default where the URL says nothing.
func dialTimeout(d time.Duration) time.Duration {
	if d == 0 {
		return 5 * time.Second
	}
	return max(d, 0)
}
