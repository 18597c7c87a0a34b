package main

import "time"

// lossShown is how long a lost replica is missing at least in what Prometheus sees, which looks every second
// (framestorm/platform/openfaas/config.py): a replacement may be ready 20 ms later, and nobody would see the loss.
const lossShown = 2500 * time.Millisecond

// losses of a function: replicas that were ready and ended although nobody asked them to, and the time in which fewer
// were ready than wanted. Guarded by the function's lock.
type losses struct {
	count      int
	left       int       // replicas that the last losses left ready
	shownUntil time.Time // left is shown until then, and until it was seen
	unseen     bool
	shortSince time.Time // zero while there are enough
	shortFor   time.Duration
}

func (l *losses) lose(ready int, now time.Time) {
	l.left = l.fewest(ready, now)
	l.count++
	l.shownUntil, l.unseen = now.Add(lossShown), true
}

// look is fewest for Prometheus.
func (l *losses) look(ready int, now time.Time) int {
	shown := l.fewest(ready, now)
	l.unseen = false
	return shown
}

// note follows whether there are enough.
func (l *losses) note(desired, ready int, now time.Time) {
	if isShort := ready < desired; isShort && l.shortSince.IsZero() {
		l.shortSince = now
	} else if !isShort {
		l.shortFor, l.shortSince = l.short(now), time.Time{}
	}
}

// short is the whole time in which fewer were ready than wanted.
func (l *losses) short(now time.Time) time.Duration {
	if l.shortSince.IsZero() {
		return l.shortFor
	}
	return l.shortFor + now.Sub(l.shortSince)
}

// fewest is the number of ready replicas, or the fewest that a loss has just left.
func (l *losses) fewest(ready int, now time.Time) int {
	if l.unseen || now.Before(l.shownUntil) {
		return min(ready, l.left)
	}
	return ready
}
