/* log |gamma(x)| in float64, for every number; one call each, since its branches are too long to compute them all. */
#ifndef PULLBACK_LOG_GAMMA_H
#define PULLBACK_LOG_GAMMA_H

double precise_lgamma(double x);

#endif
