// Package purges tests purges: what is removed, where purges search, and what stays.
package purges
