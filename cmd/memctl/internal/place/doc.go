// Package place opens the place of a store's copy that a URL names: a folder (file:///PATH) or a bucket
// (s3://BUCKET/PREFIX?endpoint=HOST:PORT&region=REGION). Credentials come from the environment, never from the URL.
package place
