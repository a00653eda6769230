export const signIn = {
  title: "Sign in",
  withIssuer: "Sign in with {host}",
  or: "or with a token",
  token: "Token",
  tokenHelp: "Kept until you close this tab or sign out, and sent only to this server.",
  noToken: "Where do I get a token?",
  help: "An administrator makes one under Administration, or with “astrago tokens create”. The very first one is in the file admin-token of the server's data folder.",
  submit: "Sign in",
  refused: "The server does not know this token, or it has expired.",
  left: "You are signed out.",
  ended:
    "Your session has ended: the server no longer accepts your token. Sign in again to continue where you were.",
  expired: "Your session has expired. Sign in again to continue where you were.",
  insecure:
    "The browser does not let this page sign in with an identity provider, because it came over plain HTTP. Open it over HTTPS, or use a token.",
  issuer:
    "The identity provider does not answer as it should. Try again, or use a token; an administrator may have to look at its settings.",
  denied: "The identity provider did not let you in. Try again, or use a token.",
  stale: "This sign-in was not started in this tab, or was used already. Start again.",
  forged: "The answer of the identity provider does not belong to this sign-in. Start again.",
  noAccount: "New here?",
  signUp: "Sign up",
  user: "User name",
  userHelp: "Lower-case letters, digits and dashes. Your namespace and the names of your jobs begin with it.",
  haveToken: "I have a token",
  welcome: "Welcome, {name}",
  keepToken:
    "Your namespace is {namespace}, and this is your token. You will not see it again: keep it where you keep passwords.",
  goOn: "I have saved it, continue",
} as const;
