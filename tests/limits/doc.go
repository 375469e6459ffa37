// Package limits tests limits of a store, eviction, expiry and full disks.
package limits
