// Package redis keeps working memory in Redis or Valkey.
package redis
