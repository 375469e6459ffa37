// Package place opens the place of a store's copy that a URL names: a folder (file:///PATH), a bucket
// (s3://BUCKET/PREFIX?endpoint=HOST:PORT&region=REGION) or a schema of a PostgreSQL database
// (postgres://USER@HOST:PORT/DATABASE?schema=NAME). Credentials come from the environment, never from the URL.
package place
