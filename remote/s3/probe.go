package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/varve-db/varve/remote"
)

const (
	probeFolder = "probe/"
	// probeRounds is the number of rounds of the probe for each of its two conditions; see probe.
	probeRounds = 4
	probeSize   = 64 << 10
	probeTime   = 30 * time.Second
	// probePause is the time for which both requests of a round wait after the first half of their bodies. After this
	// time, an object store that checks the condition at the beginning of a request has accepted both requests, so
	// both succeed and probe detects the fault.
	probePause = 100 * time.Millisecond
)

// probe returns an error if two writers can both store the same object in the object store. In each round two requests
// for the same name first send half of their bodies; then both send the rest at the same time. Exactly one may
// succeed, and the object must have its bytes. In the first rounds the condition is that the object is new; in the
// later ones, that it has the ETag of the round before.
func (r *Remote) probe(ctx context.Context) error {
	unfit := func(why string, err error) error {
		if err != nil {
			why += ": " + err.Error()
		}
		return fmt.Errorf("%s is %w: %s -> use an object store that compares If-Match and If-None-Match when it stores "+
			"an object, such as Amazon S3, Cloudflare R2 or MinIO", r.Place(), remote.ErrUnsuitable, why)
	}
	name, tag := "", ""
	for round := range 2 * probeRounds {
		condition := http.Header{}
		if round < probeRounds {
			var err error
			if name, err = r.random(probeFolder); err != nil {
				return err
			}
			made := name
			defer func() { _ = r.remove(context.WithoutCancel(ctx), made) }()
			condition.Set("If-None-Match", "*")
		} else {
			condition.Set("If-Match", `"`+tag+`"`)
		}
		won, err := r.compete(ctx, name, condition, round)
		if errors.Is(err, errProbe) {
			return unfit(err.Error(), nil)
		}
		if err != nil {
			return err
		}
		b, now, err := r.get(ctx, name, probeSize)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return unfit("a new object cannot be read", err)
		case err != nil:
			return err
		case !bytes.Equal(b, won):
			return unfit("a new object has the bytes of another writer", nil)
		case now == "" || now == tag:
			return unfit("a changed object has no new ETag", nil)
		}
		later := []string{absent} // conditions that do not hold any more
		if round >= probeRounds {
			later = append(later, tag)
		}
		for _, c := range later {
			if _, err := r.put(ctx, name, b[:1], c); err == nil {
				return unfit("a later writer has replaced the object, although its condition does not hold", nil)
			} else if !refused(err) {
				return err
			}
		}
		tag = now
	}
	return nil
}

// errProbe is the error for a result of the probe that makes an object store unsuitable.
var errProbe = errors.New("the writers of the test")

// compete lets two writers store the object name with the same condition at the same time. It returns the bytes of the
// writer that succeeded. If both succeed or none does, the error matches errProbe.
func (r *Remote) compete(ctx context.Context, name string, condition http.Header, round int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var (
		half    sync.WaitGroup // both writers have sent half of their bodies
		done    sync.WaitGroup
		bodies  [2][]byte
		answers [2]int
		failed  [2]error
	)
	half.Add(2)
	for i := range 2 {
		bodies[i] = bytes.Repeat([]byte{byte(2*round + i)}, probeSize)
		done.Go(func() {
			answers[i], failed[i] = r.slowPut(ctx, name, condition, bodies[i], func() {
				half.Done()
				half.Wait()
				_ = r.o.Sleep(ctx, probePause)
			})
		})
	}
	done.Wait()
	won := -1
	for i, status := range answers {
		switch {
		case failed[i] != nil:
			return nil, failed[i]
		case status == http.StatusOK && won >= 0:
			return nil, fmt.Errorf("%w have both stored the same object", errProbe)
		case status == http.StatusOK:
			won = i
		case status == http.StatusForbidden || status == http.StatusUnauthorized || status == http.StatusNotFound:
			// as a request with all checks words it
			if _, err := r.put(ctx, name, bodies[i], absent); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%w were answered with status %d", errProbe, status)
		case status != http.StatusPreconditionFailed && status != http.StatusConflict:
			return nil, fmt.Errorf("%w were answered with status %d", errProbe, status)
		}
	}
	if won < 0 {
		return nil, fmt.Errorf("%w were both refused", errProbe)
	}
	return bodies[won], nil
}

// slowPut stores an object by a request that calls atHalf when half of the body is sent, and returns the status of the
// answer.
func (r *Remote) slowPut(ctx context.Context, name string, condition http.Header, b []byte, atHalf func()) (status int,
	err error) {
	once := sync.OnceFunc(atHalf)
	defer once() // the other writer waits for this one
	u, err := r.core.PresignHeader(ctx, http.MethodPut, r.o.Bucket, r.key(name), probeTime, nil, condition)
	if err != nil {
		return 0, r.wrapped("storing", name, err)
	}
	body := &slowBody{b: b, half: len(b) / 2, atHalf: once}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, u.String(), io.NopCloser(body))
	if err != nil {
		return 0, err
	}
	req.Header, req.ContentLength = condition.Clone(), int64(len(b))
	answer, err := r.o.Transport.RoundTrip(req)
	if err != nil {
		return 0, fmt.Errorf("storing %s (%s): %w", r.Place(), name, err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20))
	return answer.StatusCode, answer.Body.Close()
}

// slowBody is the body of a request that calls atHalf before its second half.
type slowBody struct {
	b        []byte
	at, half int
	atHalf   func()
}

// Read returns bytes of the first half. When these are read, it calls atHalf and then returns the bytes of the second
// half.
func (s *slowBody) Read(p []byte) (int, error) {
	if s.at == s.half {
		s.atHalf()
	}
	end := len(s.b)
	if s.at < s.half {
		end = s.half
	}
	n := copy(p, s.b[s.at:end])
	if s.at += n; s.at == len(s.b) {
		return n, io.EOF
	}
	return n, nil
}
