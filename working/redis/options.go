package redis

import (
	"errors"
	"net/url"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/working"
)

// DefaultPrefix is the beginning of every key if Options.Prefix is empty.
const DefaultPrefix = "wm:"

// Options are the options of a Home. Only URL is required.
type Options struct {
	// URL is redis://[user:password@]host:port/db, rediss:// for TLS, unix://path;
	// a cluster has cluster=true or further nodes in addr=host:port. Time-outs and
	// the pool are in its query: dial_timeout, read_timeout, write_timeout,
	// pool_size, min_idle_conns, pool_timeout, conn_max_idle_time and so on, as
	// ParseURL of go-redis reads them.
	URL string
	// Prefix is the beginning of every key; "": DefaultPrefix. It must not contain braces, because they mark the hash
	// tag of a key.
	Prefix string
	// Fallback lets operations use an in-process home while Redis cannot be reached. Its content is not in Redis
	// afterwards; see the package comment. Without Fallback, operations fail.
	Fallback bool
	// RetryAfter is the interval at which a fallback tries to reach Redis; 0: one second.
	RetryAfter time.Duration
	// OnEvent is called when a fallback begins and when it has ended. It must not call the Home.
	OnEvent func(Event)
	// Clock is the clock of the fallback; nil: the system's clock. Lifetimes in Redis are measured by the server's
	// clock.
	Clock working.Clock
}

// Validate returns the first invalid option as an error, or nil.
func (o *Options) Validate() error {
	_, _, err := o.parse()
	return err
}

func (o *Options) prefix() string {
	if o.Prefix == "" {
		return DefaultPrefix
	}
	return o.Prefix
}

// client returns a client. It connects to Redis when the client is first used.
func (o *Options) client() (goredis.UniversalClient, error) {
	one, cluster, err := o.parse()
	switch {
	case err != nil:
		return nil, err
	case cluster != nil:
		return goredis.NewClusterClient(cluster), nil
	}
	return goredis.NewClient(one), nil
}

// parse returns the go-redis options, either for a single server or for a cluster. It disables the retries of go-redis,
// because go-redis cannot know whether a command was already executed.
func (o *Options) parse() (*goredis.Options, *goredis.ClusterOptions, error) {
	bad := func(field, value string, err error) (*goredis.Options, *goredis.ClusterOptions, error) {
		return nil, nil, &errs.FieldError{Field: field, Value: human.Quote(value), Err: err}
	}
	if strings.ContainsAny(o.Prefix, "{}") {
		return bad("Options.Prefix", o.Prefix,
			errors.New("must not contain braces: they mark the hash tag of a key in a cluster"))
	}
	if o.RetryAfter < 0 {
		return bad("Options.RetryAfter", o.RetryAfter.String(), errors.New("must not be negative"))
	}
	u, err := url.Parse(o.URL)
	if err != nil || o.URL == "" {
		// The error of url.Parse includes the whole URL, with its password.
		return bad("Options.URL", "", errors.New("not a valid URL; use the form redis://user:password@host:6379/0"))
	}
	hidden := u.Redacted()
	query := u.Query()
	isCluster := query.Get("cluster") == "true" || query.Has("addr")
	query.Del("cluster")
	u.RawQuery = query.Encode()
	off := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if isCluster {
		c, err := goredis.ParseClusterURL(u.String())
		if err != nil {
			return bad("Options.URL", hidden, err)
		}
		c.MaxRetries, c.Protocol, c.DisableRoutingPolicies, c.DisableIdentity, c.MaintNotificationsConfig = -1, 2, true, true,
			off
		c.Dialer = dialer(&goredis.Options{DialTimeout: dialTimeout(c.DialTimeout), TLSConfig: c.TLSConfig})
		return nil, c, nil
	}
	c, err := goredis.ParseURL(u.String())
	if err != nil {
		return bad("Options.URL", hidden, err)
	}
	c.MaxRetries, c.Protocol, c.DisableIdentity, c.MaintNotificationsConfig = -1, 2, true, off
	c.Dialer = dialer(&goredis.Options{DialTimeout: dialTimeout(c.DialTimeout), TLSConfig: c.TLSConfig})
	return c, nil, nil
}

// dialTimeout returns the time limit for a connection attempt. d is the value of the go-redis option: 0 means 5 s, the
// default of go-redis. A negative value means no limit; then dialTimeout returns 0.
func dialTimeout(d time.Duration) time.Duration {
	if d == 0 {
		return 5 * time.Second
	}
	return max(d, 0)
}
