package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/minio/minio-go/v7"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
)

// The kinds of objects that pack writes.
const (
	magicHead     = "VARVEHED"
	magicList     = "VARVELST"
	magicSnapshot = "VARVESNP"
	magicMachine  = "VARVEMCH"
)

const (
	version    = 1
	packHead   = 16
	mostJSON   = 1 << 20 // bytes of the JSON of one object
	mostPacked = 4 << 20 // bytes of an object that pack writes
)

var (
	errSum  = errors.New("the bytes do not match their SHA-256")
	errForm = errors.New("the content is not valid")
)

// compressor returns the encoder and the decoder for the JSON of objects. The decoder refuses JSON of more than
// mostJSON bytes.
var compressor = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // of the options, which are constants
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostJSON))
	if err != nil {
		panic(err)
	}
	return e, d
})

// pack encodes an object: the JSON of v, and after it the bytes raw.
func pack(magic string, v any, raw []byte) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(text) > mostJSON {
		return nil, fmt.Errorf("%w: the JSON of the object has %d bytes, the limit is %d", errs.ErrLimit,
			len(text), mostJSON)
	}
	e, _ := compressor()
	b := append(make([]byte, 0, packHead+len(text)/4+len(raw)+sha256.Size), magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = e.EncodeAll(text, b)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(b)-packHead))
	b = append(b, raw...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), nil
}

// unpack decodes an object that pack has encoded: it decodes the JSON into v and returns the bytes after the JSON.
// Errors contain name, the name of the object.
func unpack(magic, name string, b []byte, v any) (raw []byte, err error) {
	corrupt := func(err error) ([]byte, error) {
		return nil, &errs.CorruptionError{Path: name, Offset: -1, Err: err}
	}
	end := len(b) - sha256.Size
	if end < packHead || string(b[:8]) != magic || sha256.Sum256(b[:end]) != [32]byte(b[end:]) {
		return corrupt(errSum)
	}
	if n := binary.LittleEndian.Uint32(b[8:]); n > version {
		return nil, &errs.NewerError{Path: name, Format: uint64(n), Reads: version}
	}
	n := int64(binary.LittleEndian.Uint32(b[12:]))
	if n > int64(end-packHead) {
		return corrupt(errForm)
	}
	_, d := compressor()
	text, err := d.DecodeAll(b[packHead:packHead+n], nil)
	if err != nil {
		return corrupt(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return corrupt(err)
	}
	return b[packHead+n : end], nil
}

// key returns the key of an object in the bucket: the prefix of the remote, a slash, and the object's name.
func (r *Remote) key(name string) string {
	if r.o.Prefix == "" {
		return name
	}
	return r.o.Prefix + "/" + name
}

// timeFor returns how long a request with so many bytes may take: a minute, and a second for each 64 KiB.
func timeFor(n int64) time.Duration { return time.Minute + time.Duration(n>>16)*time.Second }

// random returns a new random name for an object in a folder.
func (r *Remote) random(folder string) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(r.o.Random, b[:]); err != nil {
		return "", err
	}
	return folder + encoding.EncodeToString(b[:]), nil
}

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// isRandom reports whether a name has the form of the names that random returns.
func isRandom(name, folder string) bool {
	text, ok := strings.CutPrefix(name, folder)
	b, err := encoding.DecodeString(text)
	return ok && err == nil && len(b) == 16
}

// The conditions of put, apart from an ETag.
const (
	always = "" // no condition
	absent = "*"
)

// put stores an object with one request, and returns the object's ETag. condition is always, absent or an ETag: with
// always, put replaces any existing object; with absent, no object with this name may exist; with an ETag, the
// existing object must have this ETag. If the condition does not hold, refused returns true for the error.
func (r *Remote) put(ctx context.Context, name string, b []byte, condition string) (tag string, err error) {
	opts := minio.PutObjectOptions{DisableMultipart: true, ContentType: "application/octet-stream"}
	switch condition {
	case always:
	case absent:
		opts.SetMatchETagExcept(absent)
	default:
		opts.SetMatchETag(condition)
	}
	ctx, cancel := context.WithTimeout(ctx, timeFor(int64(len(b))))
	defer cancel()
	sum := sha256.Sum256(b)
	info, err := r.core.PutObject(ctx, r.o.Bucket, r.key(name), bytes.NewReader(b), int64(len(b)), "",
		fmt.Sprintf("%x", sum), opts)
	return info.ETag, r.wrapped("storing", name, err)
}

// get returns an object and its ETag. maxBytes is the maximum size of the object.
func (r *Remote) get(ctx context.Context, name string, maxBytes int64) (b []byte, tag string, err error) {
	return r.getPart(ctx, name, 0, maxBytes, minio.GetObjectOptions{})
}

// getPart returns an object, or the range of it that opts requests, and the ETag of the object. maxBytes is the
// maximum number of bytes, and off is the offset in the object at which the range begins.
func (r *Remote) getPart(ctx context.Context, name string, off, maxBytes int64, opts minio.GetObjectOptions) ([]byte,
	string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeFor(min(maxBytes, segment.MaxSize)))
	defer cancel()
	body, info, _, err := r.core.GetObject(ctx, r.o.Bucket, r.key(name), opts)
	if err != nil {
		return nil, "", r.wrapped("reading", name, err)
	}
	defer body.Close()
	b, err := remote.ReadAll(body, info.Size, maxBytes)
	if errors.Is(err, errs.ErrTooLarge) {
		return nil, "", &errs.CorruptionError{Path: r.key(name), Offset: off, Err: err}
	}
	if err != nil {
		return nil, "", r.wrapped("reading", name, err)
	}
	return b, info.ETag, nil
}

// tagOf returns the ETag of an object.
func (r *Remote) tagOf(ctx context.Context, name string) (string, error) {
	info, err := r.core.StatObject(ctx, r.o.Bucket, r.key(name), minio.StatObjectOptions{})
	return info.ETag, r.wrapped("reading", name, err)
}

// remove removes an object. If the object does not exist, remove returns nil.
func (r *Remote) remove(ctx context.Context, name string) error {
	err := r.core.RemoveObject(ctx, r.o.Bucket, r.key(name), minio.RemoveObjectOptions{})
	if err = r.wrapped("removing", name, err); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// listed describes one object in a listing.
type listed struct {
	name string
	time time.Time // when it was stored, by the clock of the object store
}

// names returns the objects whose names begin with a prefix, in the order of their names.
func (r *Remote) names(ctx context.Context, prefix string) iter.Seq2[listed, error] {
	return func(yield func(listed, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		root := r.key("")
		for o := range r.core.Client.ListObjectsIter(ctx, r.o.Bucket, minio.ListObjectsOptions{Prefix: r.key(prefix),
			Recursive: true}) {
			if o.Err != nil {
				yield(listed{}, r.wrapped("listing", prefix, o.Err))
				return
			}
			if !yield(listed{strings.TrimPrefix(o.Key, root), o.LastModified}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(listed{}, err)
		}
	}
}

// errRefused reports that the object store refused a request because its condition did not hold; see put.
var errRefused = errors.New("the object was changed by another writer")

// refused reports whether err means that put did not store an object because the condition did not hold.
func refused(err error) bool { return errors.Is(err, errRefused) }

// wrapped returns an error of the object store with the operation and the name of the object in front. If the object
// store has answered with a known code or HTTP status, the result matches the sentinel error for it, such as
// fs.ErrNotExist. wrapped returns nil if err is nil.
func (r *Remote) wrapped(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	where := r.Place()
	if name != "" {
		where += " (" + name + ")"
	}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return fmt.Errorf("%s %s: %w", doing, where, err)
	}
	text := answer.Code + ": " + answer.Message
	kind := func(kind error, remedy string) error {
		if remedy != "" {
			remedy = " -> " + remedy
		}
		return fmt.Errorf("%s %s: %w: %s%s", doing, where, kind, text, remedy)
	}
	switch answer.Code {
	case "NoSuchBucket":
		return kind(remote.ErrNoRemote, "create the bucket, or correct its name")
	case "NoSuchKey", "NotFound":
		return kind(fs.ErrNotExist, "")
	case "PreconditionFailed", "ConditionalRequestConflict", "OperationAborted":
		return kind(errRefused, "")
	case "QuotaExceeded", "XMinioStorageFull", "InsufficientStorage", "XMinioAdminBucketQuotaExceeded":
		return kind(errs.ErrDiskFull, "raise the quota of the bucket, or remove other objects from it")
	case "NotImplemented":
		return kind(remote.ErrUnsuitable, "")
	case "RequestTimeTooSkewed":
		return kind(errs.ErrPermission, "correct the clock of this machine")
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "ExpiredToken", "InvalidToken",
		"AllAccessDisabled", "AccountProblem":
		return kind(errs.ErrPermission, "check the credentials and what they may do in the bucket")
	}
	switch answer.StatusCode {
	case http.StatusPreconditionFailed, http.StatusConflict:
		return kind(errRefused, "")
	case http.StatusNotFound:
		return kind(fs.ErrNotExist, "")
	case http.StatusForbidden, http.StatusUnauthorized:
		return kind(errs.ErrPermission, "check the credentials and what they may do in the bucket")
	case http.StatusInsufficientStorage:
		return kind(errs.ErrDiskFull, "raise the quota of the bucket, or remove other objects from it")
	}
	return fmt.Errorf("%s %s: %s: %w", doing, where, answer.Code, err)
}
