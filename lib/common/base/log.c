/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

RTE_LOG_REGISTER(softhca_logtype, softhca, INFO);
