// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Loop
